# The sampler's signal at each instruction of short programs (single_step.c): none crashes, and each stack that was
# taken is that before or after its instruction. In a program without loss that means: from one stack to the next,
# one frame came, or frames went, or only the line of the innermost one changed; and each method came as often as the
# program called it. A stack that is wrong for one instruction breaks both.
require_relative "helper"
require "rbconfig"

unless RbConfig::CONFIG["host_cpu"] == "x86_64" && !Integration::EMULATED
  warn "these tests are for x86-64 processors"
  exit Integration::NOT_APPLICABLE
end

class TestSingleStep < Integration::Test
  # What these do is no frame's business, and takes many instructions: naming of the stacks that were taken, parsing,
  # compiling, marking and sweeping. Handling of interrupts would not end if the next came before its last instruction.
  RUN_THROUGH = /\A(?:rb_vm_trace_sample_ring_take|rb_threadptr_execute_interrupts(?:\.part\.0)?|
                     (?:pm_)?eval_make_iseq(?:\.constprop\.0)?|gc_(?:marks_rest|sweep|sweep_step)|
                     rb_[yz]jit_(?:iseq_gen_entry_point|(?:constant|invalidate|cme|bop)_\w+)|
                     \S*(?:branch|entry|function)_stub_hit_body\S*)\z/x
  CALLSITES = <<~SQL
    SELECT c.id, c.parent_id, f.name, y.line_number FROM stack_profile_callsite c
    JOIN stack_profile_frame f ON f.id = c.frame_id
    LEFT JOIN stack_profile_symbol y ON y.symbol_set_id = f.symbol_set_id
  SQL
  SAMPLES = <<~SQL
    SELECT s.callsite_id, COALESCE(a.id, -1), w.value FROM stack_sample s
    JOIN stack_sample_counter w ON w.stack_sample_id = s.id
    JOIN stack_sample_counter_track k ON k.id = w.track_id AND k.name NOT IN ('wall time', 'CPU time')
    JOIN stack_sample_task_context x ON x.id = s.task_context_id
    LEFT JOIN stack_sample_async_context a ON a.id = x.async_context_id ORDER BY s.id
  SQL
  PROGRAM = <<~'RUBY'
    def mark = Process.kill(:STOP, $$)
    # PART
    30.times { part }
    # A thread that has only been made would take the signal, and be stopped by it.
    sleep 0.001 while Dir["/proc/self/task/*/stat"].count { |path| File.read(path).include?(") R ") } > 1
    mark
    part
    mark
  RUBY
  MARKED = { "Object#mark" => 1, "Process.kill" => 1, "Object#part" => 1 }.freeze

  NS = 1000 # what the stepper says that each sample represents

  # Without a JIT once for each base, if not all is asked for.
  JITS = LONG || JIT == "yjit" ? [nil, JIT] : [JIT]

  # `counts`: how often each method comes. With a JIT some come without a frame. Methods in C that only `c` names may
  # come or not. `jumps`: continuations that are called.
  def self.part(name, program, counts, c: [], jumps: 0)
    JITS.each do |jit|
      define_method("test_#{name}#{"_without_jit" unless jit}") { check(program, MARKED.merge(counts), c, jumps, jit) }
    end
  end

  part "blocks", <<~'RUBY', {
    def y = yield
    def part = [1, 2].each { |x| y { x } }
  RUBY
    "Array#each" => 1, "block in Object#part" => 2, "Object#y" => 2, "block (2 levels) in Object#part" => 2
  }
  # A compiled block that stores no pc: what is left over in its frame is that of the other block, as deep.
  part "blocks_of_one_method", <<~'RUBY', {
    def y = yield(1)
    def forward(&block) = further(&block)
    def further(&block) = y(&block)
    def part
      forward { |x| [x].first }
      y { |x| y { x & 1 } }
    end
  RUBY
    "Object#y" => 3, "Object#forward" => 1, "Object#further" => 1, "block in Object#part" => 2,
    "block (2 levels) in Object#part" => 1
  }, c: ["Array#first"]
  # CRuby moves the outer environment to the heap before the inner one knows.
  part "blocks_that_become_procs", <<~'RUBY', {
    def y = yield
    def part
      "x" =~ /x/
      y { y { proc { } } }
      y { lambda { } }
    end
  RUBY
    "Object#y" => 3, "block in Object#part" => 2, "block (2 levels) in Object#part" => 1, "Kernel#proc" => 1,
    "Kernel#lambda" => 1
  }, c: ["String#=~"]
  part "procs", <<~'RUBY', { "Object#take" => 1, "block in Object#part" => 2 }
    def take(&block) = block
    def part
      one = take { $~ }
      one.call
      one.()
    end
  RUBY
  part "other_ways_to_call", <<~'RUBY', {
    def bare = 1
    def method_missing(name, *) = name == :nothing ? bare : super
    Pair = Struct.new(:a, :b) do
      def initialize(a, b) = super
      def sum = a + b
    end
    BARE = method(:bare)
    def part
      nothing
      send(:bare)
      BARE.call
      BARE.unbind.bind_call(self)
      [Pair.new(1, 2)].map(&:sum)
      Pair.instance_method(:sum).bind_call(Pair.allocate.tap { |pair| pair.a = pair.b = 1 })
    end
  RUBY
    "Object#bare" => 4, "Object#method_missing" => 1, "Method#call" => 1, "Method#unbind" => 1,
    "UnboundMethod#bind_call" => 2, "Pair#initialize" => 1, "Struct#initialize" => 1, "Array#map" => 1, "Pair#sum" => 2,
    "Module#instance_method" => 1, "Class#allocate" => 1, "Kernel#tap" => 1, "block in Object#part" => 1
  }, c: ["Class#new", "Pair.new", "Symbol#==", "Kernel#send", "Kernel#__send__", "Struct#a=", "Struct#b="]
  part "defined_methods_and_class_bodies", <<~'RUBY', {
    class Dynamic
      define_method(:dynamic) { |x| x }
      def self.body = Class.new { attr_reader :a; def b = 1 }
    end
    D = Dynamic.new
    def part
      D.dynamic(1)
      Dynamic.body
      eval("class Object::Other; def c = 2; end; module Object::Another; end")
    end
  RUBY
    "Object#part" => 2, "Dynamic#dynamic" => 1, "Dynamic.body" => 1, "block in Dynamic.body" => 1,
    "Class#initialize" => 1, "Class#inherited" => 1, "Module#attr_reader" => 1, "Module#method_added" => 3,
    "Kernel#eval" => 1, "<class:Other>" => 1, "<module:Another>" => 1, "Class#new" => 1
  }
  part "bindings", <<~'RUBY', {
    def part
      local = 1
      bound = binding
      bound.local_variable_set(:other, 2)
      bound.eval("local + other")
      instance_eval { local }
    end
  RUBY
    "Object#part" => 3, "Kernel#binding" => 1, "Binding#local_variable_set" => 1, "Binding#eval" => 1,
    "BasicObject#instance_eval" => 1, "block in Object#part" => 1
  }
  part "exceptions", <<~'RUBY', {
    class Wrong < StandardError; end
    def wrong = raise(Wrong)
    def ensured
      yield
    ensure
      @ensured = true
    end
    def part
      ensured { wrong }
    rescue Wrong
      catch(:done) { ensured { throw :done } }
      [1, 2].each { |x| break x }
      proc { next 1 }.call
      ensured { return 3 }
    end
  RUBY
    "Object#ensured" => 3, "block in Object#part" => 5, "block (2 levels) in Object#part" => 1, "Object#wrong" => 1,
    "Kernel#raise" => 1, "Exception.exception" => 1, "Exception#initialize" => 1, "Module#===" => 1,
    "Kernel#catch" => 1, "Kernel#throw" => 1, "Array#each" => 1, "Kernel#proc" => 1
  }, c: ["Exception#exception", "Exception#backtrace"]
  part "tail_calls", <<~'RUBY', { "Object#first" => 2, "Object#last" => 2 }
    RubyVM::InstructionSequence.compile(<<~CODE, tailcall_optimization: true, trace_instruction: false).eval
      def last(n) = n
      def first(n) = last(n + 1)
      def part
        first(1)
        first(2)
      end
    CODE
  RUBY
  part "fibers", <<~'RUBY', {
    def inside = Fiber.yield(1)
    def part
      fiber = Fiber.new { inside }
      fiber.resume
      fiber.resume
      Enumerator.new { |y| y << 1 }.next
    end
  RUBY
    "Fiber#initialize" => 1, "Fiber#resume" => 2, "Fiber.yield" => 1, "Object#inside" => 1, "block in Object#part" => 2,
    "Enumerator#initialize" => 1, "Enumerator#next" => 1, "Enumerator#each" => 1, "Enumerator::Generator#each" => 1,
    "Enumerator::Yielder#<<" => 1, "Class#new" => 2
  }, c: ["RubyVM::FrozenCore.proc", "proc"]
  part "continuations", <<~'RUBY', {
    require "continuation"
    def deep(&block) = deeper(1, 2, 3, &block)
    def deeper(a, b, c, &block) = deepest(b, &block)
    def deepest(d, &block) = block.call
    def part
      deep { callcc { |found| @again = found } }
      $count = ($count || 0) + 1
      return $count = 0 if $count > 2
      [1].each { deepest(4) { @again.call } }
    end
  RUBY
    "Object#deep" => 1, "Object#deeper" => 1, "Object#deepest" => 3, "block in Object#part" => 3,
    "block (2 levels) in Object#part" => 3, "Kernel#callcc" => 1, "Array#each" => 2, "Continuation#call" => 2
  }, jumps: 2
  part "collections", <<~'RUBY', { "GC.start" => 1, "BasicObject#initialize" => 1 }, c: ["Class#new"]
    def part
      GC.start
      [Object.new]
    end
  RUBY
  part "exits", <<~'RUBY', {
    def add(a, b) = a + b
    def constant = WHICH
    WHICH = 1
    def part
      $n = ($n || 0) + 1
      add($n > 30 ? 1.5 : 1, 2)
      constant
      Object.__send__(:remove_const, :WHICH) if $n == 31
      Object.const_set(:WHICH, 2) if $n == 31
      constant
      ::RubyVM::ZJIT.induce_side_exit!
    end
  RUBY
    "Object#add" => 1, "Float#+" => 1, "Object#constant" => 2, "Module#remove_const" => 1, "Module#const_set" => 1,
    "Module#const_added" => 1
  }, c: ["Integer#+", "Kernel#__send__", "RubyVM::ZJIT.induce_side_exit!"]

  def check(program, counts, c, jumps, jit)
    dir = scratch_dir
    File.write(File.join(dir, "script.rb"), jit(PROGRAM.sub("# PART", program)))
    flags = jit ? ["--#{jit}", "--#{jit}-call-threshold=10"] : ["--disable-jit"]
    run = run_in(dir, "--vm-trace=samples:10s", "--vm-trace-file=%p.fxt", *flags, "script.rb",
                 command: [self.class.stepper, *self.class.addresses, RUBY, "--disable=gems", *COMPATIBILITY])
    skip "tracing of processes is not permitted" if run.status.exitstatus == 77
    assert_predicate run.status, :success?, run.err
    validate_all(run)
    signals, = run.out.split.map(&:to_i)
    seen = stacks(run.trace)
    assert_operator seen.sum(&:last), :>=, signals * NS # there are those that the sampler has taken by itself
    came, jumped = moves(seen.drop_while { |stack,| stack.none? { |method,| method == "Object#mark" } })
    assert_operator jumped.size, :<=, jumps, jumped.inspect
    came = came.except(*c - counts.keys)
    return assert_equal counts, came unless jit
    assert_empty came.reject { |method, times| times <= counts.fetch(method, 0) }
  end

  # [name, line] of each frame, outermost first, the fiber, and what the sample represents.
  def stacks(trace)
    sites = trace.query(CALLSITES).to_h { |id, parent, *frame| [id, [parent, frame]] }
    whole = Hash.new do |known, id|
      parent, frame = sites[id]
      known[id] = frame && frame[0] != "(no Ruby frames)" ? [*known[parent], frame] : []
    end
    trace.query(SAMPLES).map { |site, fiber, ns| [whole[site], fiber, ns.to_f.to_i] }
  end

  # How often each method came, and what is neither the coming of a frame nor the going of some.
  def moves(seen)
    came, jumped, last = Hash.new(0), [], {}
    seen.each do |stack, fiber,|
      before = last[fiber]
      last[fiber] = stack
      next unless before
      same = stack.zip(before).take_while { |now, then_| then_ && now[0] == then_[0] }.size
      if before.size == same && stack.size == same + 1
        came[stack.last[0]] += 1
      elsif stack.size > same || (0...same - 1).any? { |i| stack[i] != before[i] }
        jumped << [before.drop([same - 2, 0].max), stack.drop([same - 2, 0].max), same]
      end
    end
    [came, jumped]
  end

  def self.stepper
    @stepper ||= begin
      dir = Dir.mktmpdir("vm-trace-step-")
      Minitest.after_run { FileUtils.rm_rf(dir) }
      path = File.join(dir, "single_step")
      system(RbConfig::CONFIG["CC"], "-O2", "-Wall", "-Wextra", "-Werror", "-I#{ROOT}",
             File.join(__dir__, "single_step.c"), "-o", path, exception: true)
      path
    end
  end

  def self.addresses
    @addresses ||= begin
      symbols = IO.popen(["nm", RUBY], &:readlines).map(&:split)
      current = symbols.find { |symbol| symbol[2] == "rb_vm_trace_sampled_current" } or raise "no symbols in #{RUBY}"
      [current[0], symbols.select { |symbol| symbol[2]&.match?(RUN_THROUGH) }.map(&:first).join(",")]
    end
  end
end
