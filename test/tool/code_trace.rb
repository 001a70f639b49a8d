# A trace with the texts of two versions of a method, and exits in their lines.
require_relative "fxt_builder"

module CodeTrace
  ISEQ = "Foo#add (/app/foo.rb:3)"
  FIRST = <<~HIR
    fn add@/app/foo.rb:3:
    bb1():
      EntryPoint interpreter
      v1:BasicObject = LoadSelf
      Jump bb3(v1)
    bb3(v9:BasicObject):
      PatchPoint SingleRactorMode
      v16:Fixnum = GuardType v9, Fixnum
      v17:Fixnum = FixnumAdd v16, v16
      Jump bb4(v17)
    bb4(v20:Fixnum):
      CheckInterrupts
      Return v20
  HIR
  # The guard is gone; numbers have changed.
  SECOND = <<~HIR
    fn add@/app/foo.rb:3:
    bb1():
      EntryPoint interpreter
      v1:BasicObject = LoadSelf
      Jump bb2(v1)
    bb2(v8:BasicObject):
      PatchPoint SingleRactorMode
      v11:BasicObject = Send v8, :+, v8 # <b>polymorphic</b>
      Jump bb4(v11)
    bb4(v20:BasicObject):
      CheckInterrupts
      Return v20
  HIR
  GUARD = 8 # its line

  # texts: of the versions, from 1 on; each is an array of parts
  def self.build(texts = [[FIRST], [SECOND]], line: GUARD, &block)
    StatesTrace.new(settings: { fallback_rate: [:uint64, 1] }) do |t|
      4.times { |i| t.exits(:main, "GuardType(Fixnum)", ISEQ, 10 + i, lost: 2) }
      t.event(:begin, :main, "invalidation", "GuardType(Fixnum)", 20, iseq: ISEQ, version: [:uint32, 1])
      t.event(:end, :main, "invalidation", "GuardType(Fixnum)", 21)
      texts.each.with_index(1) { |parts, version| text(t, parts, version) }
      t.event(:instant, :main, "fallback", "Send: polymorphic", 40, "0": "Foo#add (/app/foo.rb:4)", insn: "send",
              version: [:uint32, 2])
      t.site("GuardType(Fixnum)", ISEQ, 4, lost: 8, max: 2, iseq: ISEQ, code_line: [:uint32, line])
      t.site("Send: polymorphic", "Foo#add (/app/foo.rb:4)", 1, kind: "fallback", version: 2, iseq: ISEQ,
             code_line: [:uint32, 8])
      t.states(:main, exited: 8, compiled: 92)
      block&.call(t)
    end.build
  end

  def self.text(trace, parts, version, bytes: parts.sum(&:bytesize), iseq: ISEQ)
    offset = 0
    parts.each do |part|
      at = offset.zero? ? {} : { offset: [:uint64, offset] }
      trace.event(:instant, :main, "trace", "code", 30 + version, kind: "hir", iseq: iseq, version: [:uint32, version],
                  bytes: [:uint64, bytes], **at, text: part)
      offset += part.bytesize
    end
  end
end
