# `vm-trace scrub` lets nothing through: secrets in every place of every kind of record, and none in the bytes of the copy.
require "zlib"
require_relative "tool_helper"

# Perfetto's packets, field by field: an Integer is a varint, a String a text, an Array a message.
module Packet
  module_function

  def varint(value)
    bytes = []
    while value > 0x7f
      bytes << (value & 0x7f | 0x80)
      value >>= 7
    end
    (bytes << value).pack("C*")
  end

  def message(fields)
    fields.map do |number, value|
      next varint(number << 3) + varint(value) if value.is_a?(Integer)
      value = message(value) if value.is_a?(Array)
      varint(number << 3 | 2) + varint(value.bytesize) + value.b
    end.join.b
  end

  def fixed64(number, bytes) = varint(number << 3 | 1) + bytes
end

class TestScrubLeaks < Minitest::Test
  include ToolHelper

  # Secrets are four bytes, so they also fit where a record has bits that mean nothing.
  class Secrets
    attr_reader :all

    def initialize(prefix) = (@prefix, @all = prefix, [])
    def next = (@prefix + @all.size.to_s(36).rjust(2, "0")).tap { |secret| @all << secret }
    def bits = (@bits ||= @prefix.unpack1("S<") * 0x10001)
    def found_in(bytes) = @all.select { |secret| bytes.include?(secret) }
  end

  # How a secret is in a text; and in the place of a label.
  WRAPS = {
    "absolute path" => ->(secret) { "/srv/two #{secret} words/bin/leaf" },
    "relative path" => ->(secret) { "two #{secret}/bin/runner" },
    "path in brackets" => ->(secret) { "#<File:/home/#{secret} (copy)/a, b/leaf>" },
    "name" => ->(secret) { "Acme#{secret}" },
  }.freeze

  def scrub(bytes, *options)
    Dir.mktmpdir do |dir|
      File.binwrite("#{dir}/in.fxt", bytes)
      result = tool("scrub", "-o", "#{dir}/out.fxt", *options, "#{dir}/in.fxt")
      return result, (File.binread("#{dir}/out.fxt") if File.exist?("#{dir}/out.fxt"))
    end
  end

  def text = @wrap[@secrets.next]
  def raw(words) = Array.new(2 * words) { @secrets.next }.join
  def bits = @secrets.bits

  # Each type of argument, with texts in the table and inline, and bits that mean nothing.
  def arguments(builder)
    inline = ->(string) { FxtBuilder::Inline.new(string) }
    values = [nil, 1, [:uint32, 2], [:int64, 3], [:uint64, 4], 1.5, text, inline[text], [:pointer, 5], [:koid, 6], true]
    values.each_with_index.map do |value, i|
      argument = builder.arg(i.even? ? text : inline[text], value)
      type = argument.unpack1("Q<") & 15
      unused = type == 6 ? bits >> 16 << 48 : [1, 2].include?(type) ? 0 : bits >> (type == 9 ? 1 : 0) << (type == 9 ? 33 : 32)
      argument[0, 8] = [argument.unpack1("Q<") | unused].pack("Q<")
      argument
    end
  end

  # An argument that says it is longer than its content.
  def long_argument(builder)
    argument = builder.arg(text, [:int64, 9]) + raw(2)
    argument[0, 8] = [argument.unpack1("Q<") + (2 << 4)].pack("Q<")
    argument
  end

  def events(builder)
    FxtBuilder::EVENT_TYPES.each_with_index do |type, i|
      numbers = %i[instant begin end].include?(type) ? [] : [100 + i]
      given = type == :counter ? [builder.arg(text, 5)] : arguments(builder)
      builder.event(type, text, text, ts: 10 + i, args: given, extra: numbers)
      builder.event(type, FxtBuilder::Inline.new(text), FxtBuilder::Inline.new(text), ts: 10 + i, args: [], extra: numbers)
    end
    builder.event(:instant, "marker", text, ts: 30, args: [long_argument(builder)])
    builder.event(:instant, "marker", text, ts: 30, args: [], extra: raw(3).unpack("Q<*")) # behind its end
    builder.event(14, text, text, ts: 31, args: []) # of no known type
    builder.event(:instant, text, text, ts: 31, args: [builder.arg(text, [12, 0])]) # nor this argument
    builder.event(:instant, 777, text, ts: 31, args: { text => text }) # its category is not defined
    builder.event(:complete, text, text, ts: 99, args: {}, extra: [1]) # ends before it begins
    builder.event(:instant, text, text, ts: 31, args: [], arg_count: 3) # has none of them
  end

  # The schema's own: what is in a label is in its place.
  def schema_events(builder)
    label = -> { "Foo#bar (#{text}:7)" }
    labels = (0..9).to_h { |n| [n.to_s, label[]] }
    builder.event(:instant, "side_exit", "GuardType(Fixnum)", ts: 40,
                  args: { **labels, "10+" => "#{label[]} x12 < #{label[]} < 3 more frames", "insn" => text, "seen" => text })
    builder.event(:instant, "fallback", text, ts: 40, args: { "0" => label[], "callee" => label[], "thread" => text })
    builder.event(:begin, "compile", "bar@#{text}:7", ts: 41)
    builder.event(:end, "compile", "bar@#{text}:7", ts: 42, args: { "iseq" => label[], "error" => text })
    builder.event(:instant, "preempted", label[], ts: 42, args: { "0" => label[] })
    builder.event(:begin, "blocked", label[], ts: 42, args: { "function" => text })
    builder.event(:complete, "call", label[], ts: 43, extra: [44])
    builder.event(:complete, "execution", "interpreted", ts: 43, extra: [44], args: { "why" => text, "iseq" => label[] })
    builder.event(:complete, "syscall", text, ts: 43, extra: [44], args: { text => text, "errno" => text })
    builder.event(:complete, "sched", "runnable", ts: 43, extra: [44], args: { "why" => text, "other" => text })
    builder.event(:instant, "allocation", text, ts: 43, args: { "0" => label[] })
    builder.event(:begin, "gc", text, ts: 43, args: { "reason" => text, "major_by" => text })
    builder.event(:async_begin, "reprofile", label[], ts: 43, extra: [5], args: { "reason" => text })
    builder.event(:instant, "trace", "site", ts: 44, args: { "reason" => text, "kind" => text, "location" => label[] })
    builder.event(:instant, "trace", "settings", ts: 44, args: {
                    "command" => @secrets.next, "ruby" => text, "base" => text, "methods" => text, "snapshot" => text,
                    "flags" => text, "jit" => text })
    builder.event(:instant, "trace", "host", ts: 44,
                  args: { "host" => @secrets.next, "service" => @secrets.next, "version" => @secrets.next })
  end

  def objects(builder)
    [1, 2, 3, 0].each do |type|
      name = type == 1 ? @secrets.next : text # the title of a process may be anything
      builder.kernel_object(type, 42 + type, name, text => text, "process" => [:koid, 42])
      builder.kernel_object(type, 50 + type, FxtBuilder::Inline.new(text), FxtBuilder::Inline.new(text) => text)
    end
    builder.record(7, 1 << 16 | bits >> 12 << 44, [60].pack("Q<") + raw(2))
    builder.record(8, 1 << 16 | bits >> 9 << 41 | 1 << 60, [50, 43, 44].pack("Q<*") + builder.arg(text, text) + raw(1))
    builder.record(8, 1 << 16 | bits >> 9 << 37 | 2 << 60, [51, 43].pack("Q<*") + builder.arg(text, text) + raw(1))
    builder.record(8, 1 << 28 | 1 << 36, [52].pack("Q<") + raw(2)) # a switch of the old kind
    builder.record(8, 9 << 60, [53].pack("Q<") + raw(2))
    builder.wakeup(54, 43, waker: 44)
  end

  # Every field of the tracer's packets that is a text, and unknown ones at every level.
  def packet
    unknown = -> { [200, text] }
    name = -> { [[1, 1], [2, text], unknown[]] }
    counter = -> { [[1, 1], [2, text], [3, 9], [4, text], unknown[]] }
    interned = [[5, name[]], [6, [[1, 1], [2, 1], [3, 1], [5, 1], [6, 7], [8, text], unknown[]]],
                [7, [[1, 1], [2, 1], unknown[]]], [16, name[]], [17, name[]], [18, name[]],
                [19, [[1, 1], [7, 1], [2, text], unknown[]]], [48, [[1, 1], [2, 42], [3, 43], [5, text]]], [50, counter[]],
                [51, [[1, 1], [2, text], [3, text], unknown[]]], unknown[]]
    sample = [[1, [[2, 42], [3, 43], [9, text]]], [2, 1], [6, 1], [11, 5], [12, [[1, text]]], unknown[]]
    defaults = [[100, [[1, text], [2, counter[]], [3, counter[]], unknown[]]], [58, text], unknown[]]
    [[8, 60], [10, 102], [13, 1], [12, interned], [59, defaults], [135, sample], [8, text], unknown[]]
  end

  def blob(builder, bytes, type: 3, name: text)
    reference = builder.ref(name)
    builder.record(5, reference << 16 | bytes.bytesize << 32 | type << 48 | (bits >> 24) << 56, builder.inline(name) + bytes)
  end

  def blobs(builder)
    whole = Packet.message([[1, packet]])
    blob(builder, whole)
    blob(builder, whole, name: FxtBuilder::Inline.new(text))
    blob(builder, Packet.message([[1, packet]]) + Packet.fixed64(201, raw(1)))
    blob(builder, Packet.message([[1, [[10, 102], [8, 61]]]]) + Packet.message([[9, text]]))
    blob(builder, Packet.message([[1, packet], [1, [[10, 102], [8, 62]]]])[0...-2]) # it goes on in the next one
    blob(builder, text)
    blob(builder, text, type: 1)
  end

  # Strings that no record uses, that are defined again, and with bytes behind them.
  def strings(builder)
    builder.string(20_000, text)
    builder.string(20_001, text)
    builder.string(20_001, text)
    builder.event(:instant, "marker", 20_001, ts: 70, args: [])
    builder.record(2, 20_002 << 16 | 4 << 32 | (bits & 1) << 31 | bits >> 17 << 47, "kept#{@secrets.next}" + raw(2))
    builder.event(:instant, "marker", 20_002, ts: 70, args: [])
    builder.record(2, 0, raw(3)) # padding
    both = text
    builder.event(:instant, "marker", both, ts: 71)
    builder.event(:instant, "side_exit", both, ts: 71, args: { "0" => both, both => both })
    inline = FxtBuilder::Inline.new("kept")
    builder.event(:instant, "marker", inline, ts: 72)
    builder.bytes[-4, 4] = @secrets.next # behind its text
  end

  def other_records(builder)
    builder.record(9, 0, text) # a log record
    builder.record(6, 0, text) # a userspace object
    [10, 11, 13, 15].each { |type| builder.record(type, 0, text) }
    builder.record(0, 7 << 16 | 1 << 20, text) # metadata of an unknown type
    builder.record(0, 4 << 16 | bits << 20, raw(1))
    builder.record(0, 3 << 16 | 1 << 20 | bits >> 24 << 52, raw(1))
    builder.record(0, 2 << 16 | 1 << 20 | bits >> 24 << 52, raw(1))
    builder.record(1, bits >> 8 << 16, [1_000_000_000].pack("Q<") + raw(1))
    builder.record(3, 9 << 16 | bits << 24, [42, 43].pack("Q<Q<") + raw(2))
  end

  def build
    builder = FxtBuilder.new
    builder.provider(1, text)
    builder.init
    builder.thread(1, 42, 43)
    builder.process_name(42, text)
    builder.thread_name(42, 43, text)
    %i[events schema_events objects blobs strings other_records].each { |part| send(part, builder) }
    builder.event(:instant, "marker", "the last one", ts: 90)
    builder.raw([4 | 30 << 4].pack("Q<") + text) # the file is cut within a record
    builder.bytes
  end

  WRAPS.each do |what, wrap|
    define_method("test_nothing_is_left_of_a_#{what.tr(" ", "_")}") do
      options = what == "name" ? ["--remove", "(qZ|kW)[0-9a-z]{2}"] : []
      @wrap = wrap
      copy, other = %w[qZ kW].map do |prefix|
        @secrets = Secrets.new(prefix)
        bytes = build
        assert_empty @secrets.all - @secrets.found_in(bytes)
        result, copy = scrub(bytes, *options)
        refute_nil copy, result.err
        assert_empty @secrets.found_in(copy)
        copy
      end
      assert_equal copy, other, "the copy depends on what is secret"
      assert_includes copy, "the last one"
      assert_equal copy, scrub(copy, *options).last, "scrubbed again"
      with_file(copy) do |path|
        left = tool("check", path).out
        refute_match(/zero|reserved|undefined|unknown type|words of content|not a packet|padding/, left)
      end
    end
  end

  # --- traces that were recorded ---

  # Passes each string of the table to the block, and puts what it returns into the table.
  def with_strings(bytes)
    result = +"".b
    at = 0
    while at + 8 <= bytes.bytesize
      header = bytes.unpack1("Q<", offset: at)
      size = 8 * (header >> 4 & 0xfff)
      break if size == 0
      record = bytes[at, size]
      if header & 15 == 2 && header >> 16 & 0x7fff != 0
        text = yield record[8, header >> 32 & 0x7fff]
        body = text.b + "\0" * (-text.bytesize % 8)
        record = [2 | (1 + body.bytesize / 8) << 4 | header & 0x7fff0000 | text.bytesize << 32].pack("Q<") + body
      end
      result << record
      at += size
    end
    result
  end

  # One more folder, with a blank in its name, in each path that has folders.
  def plant(text, secrets)
    secret = "/hush#{secrets.size} folder/"
    planted = text.gsub(/(?<=[(@])(?!<internal)[^()@]*\/[^()@\/]*:\d+/) { |path| path.sub(/\/(?=[^\/]*\z)/, secret) }
    secrets << secret if planted != text
    planted
  end

  def report_of(bytes)
    lines = with_file(bytes) { |path| tool("report", "--all", path).out.lines.drop(1) }
    lines.grep_v(/^  file |Contents|\/trace\.fxt /).join.squeeze(" ")
  end

  def test_reports_of_recorded_traces_are_as_before_and_have_no_folders
    planted_in = 0
    Dir["#{TRACES}/*.fxt"].each do |file|
      original = File.binread(file)
      secrets = []
      planted = with_strings(original) { |text| plant(text, secrets) }
      planted_in += 1 unless secrets.empty?
      (_, expected), (_, copy) = scrub(original), scrub(planted)
      assert_empty secrets.select { |secret| copy.include?(secret[/hush\d+/]) }, file
      assert_equal report_of(expected), report_of(copy), file
      status = ->(bytes) { with_file(bytes) { |path| tool("check", "--strict", path).status } }
      assert_equal status[original], status[copy], file
    end
    assert_operator planted_in, :>, 5
  end
end
