# Frames look as in Ruby's own backtraces: each script keeps caller_locations on the line where it
# exits, and the test compares both frame by frame.
#
# Once for each base: frames are the base's.
require_relative "helper"

class TestLabels < Integration::Test
  # `EXIT` in a script: exit, then keep the backtrace. In a trace, frames of Ruby's own Ruby code
  # have their own line; backtraces show their caller's.
  EXIT = "::RubyVM::ZJIT.induce_side_exit!; $notes << caller_locations(0)"
  PREAMBLE = "$notes = []; "
  PRINT = <<~'RUBY'

    $notes.each { |stack| puts stack.map { |at| "#{at.label} (#{at.path ? "#{at.path}:#{at.lineno}" : "<cfunc>"})" }.join("\t") }
  RUBY

  # The part of an <internal:…> frame to compare.
  def without_internal_place(stack, like: stack)
    stack.zip(like).map { |label, other| other.to_s.include?(" (<internal:") ? label[/\A.*(?= \()/m] : label }
  end

  # Rubies before 3.4 show the body of a rescue as a frame on top of its method's; a trace has one
  # for both.
  def with_handlers_in_their_methods(stack)
    stack.each_with_index.filter_map do |label, i|
      next if i > 0 && stack[i - 1].match?(/\A(rescue|ensure) in /)
      label.sub(/\A(rescue|ensure) in /, "")
    end
  end

  # The script has kept the stack of each exit; exits of its last lines are among them.
  def assert_reads_as_backtrace(body, expected = nil, flags: [], **options)
    result = trace(PREAMBLE + body.gsub("EXIT", EXIT) + PRINT, *flags, **options)
    notes = result.out.lines(chomp: true).map { |line| with_handlers_in_their_methods(line.split("\t")) }
    stacks = result.trace.exits("DirectiveInduced").map { |event| Trace.frames(event).first.map { |label| Integration.backtrace_label(label) } }
    expected &&= Integration.backtrace_label(expected)
    refute_empty stacks, "nothing exited"
    stacks.uniq.each do |stack|
      note = notes.find { |frames| without_internal_place(frames, like: stack) == without_internal_place(stack) }
      assert note, "Ruby's own backtraces:\n#{notes.uniq.map { |frames| frames.join("\n  ") }.join("\n")}\ntraced:\n#{stack.join("\n  ")}"
    end
    # Each kept stack has an exit, too: warm-up calls come from the same lines.
    traced = stacks.map { |stack| without_internal_place(stack).size }.uniq.sort
    assert_equal notes.map(&:size).uniq.sort, traced, "some stack never exited"
    assert_includes stacks.map(&:first), expected if expected
  end

  # name => [script, the innermost frame that it exits in]
  {
    method: ["def foo = (EXIT)\n9.times { foo }", "Object#foo (script.rb:1)"],
    method_of_a_class: ["class A; def foo = (EXIT); end\n9.times { A.new.foo }", "A#foo (script.rb:1)"],
    method_of_a_nested_class: ["module M; class A; def foo = (EXIT); end; end\n9.times { M::A.new.foo }", "M::A#foo (script.rb:1)"],
    inherited_method: ["class A; def foo = (EXIT); end\nclass B < A; end\n9.times { B.new.foo }", "A#foo (script.rb:1)"],
    included_method: ["module M; def foo = (EXIT); end\nclass B; include M; end\n9.times { B.new.foo }", "M#foo (script.rb:1)"],
    prepended_method: ["module M; def foo = (EXIT; super); end\nclass B; prepend M; def foo = (EXIT); end\nb = B.new\n9.times { b.foo }", "M#foo (script.rb:1)"],
    super_method: ["class A; def foo = (EXIT); end\nclass B < A\n  def foo\n    super\n  end\nend\nb = B.new\n9.times { b.foo }", "A#foo (script.rb:1)"],
    singleton_method_of_a_class: ["class A; def self.foo = (EXIT); end\n9.times { A.foo }", "A.foo (script.rb:1)"],
    singleton_method_of_a_module: ["module M; def self.foo = (EXIT); end\n9.times { M.foo }", "M.foo (script.rb:1)"],
    singleton_method_of_an_inherited_class: ["class A; def self.foo = (EXIT); end\nclass B < A; end\n9.times { B.foo }", "A.foo (script.rb:1)"],
    singleton_method_of_an_object: ["o = Object.new\ndef o.foo = (EXIT)\n9.times { o.foo }", "foo (script.rb:2)"],
    singleton_method_of_main: ["def self.foo = (EXIT)\n9.times { foo }", "foo (script.rb:1)"],
    method_of_an_anonymous_class: ["a = Class.new { def foo = (EXIT) }.new\n9.times { a.foo }", "foo (script.rb:1)"],
    singleton_method_of_an_anonymous_class: ["a = Class.new { def self.foo = (EXIT) }\n9.times { a.foo }", "foo (script.rb:1)"],
    method_of_an_anonymous_module: ["m = Module.new { def foo = (EXIT) }\no = Object.new.extend(m)\n9.times { o.foo }", "foo (script.rb:1)"],
    method_of_a_class_in_an_anonymous_class: ["c = Class.new\nclass c::Inner; def foo = (EXIT); end\no = c::Inner.new\n9.times { o.foo }", "foo (script.rb:2)"],
    class_with_a_temporary_name: ["c = Class.new { def foo = (EXIT) }\nc.set_temporary_name('fake<name>')\no = c.new\n9.times { o.foo }", "foo (script.rb:1)"],
    class_with_its_own_name_method: ["class A; def self.name = 'wrong'; def self.to_s = 'wrong'; def foo = (EXIT); end\n9.times { A.new.foo }", "A#foo (script.rb:1)"],
    class_whose_constant_is_gone: ["class A; def foo = (EXIT); end\no = A.new\nObject.send(:remove_const, :A)\n9.times { o.foo }", "A#foo (script.rb:1)"],
    module_function_called_on_the_module: ["module M; module_function; def foo = (EXIT); end\n9.times { M.foo }", "M.foo (script.rb:1)"],
    module_function_called_as_a_method: ["module M; module_function; def foo = (EXIT); end\nclass A; include M; def bar = foo; end\no = A.new\n9.times { o.bar }", "M#foo (script.rb:1)"],
    refined_method: ["module R; refine(Integer) { def foo = (EXIT) }; end\nusing R\n9.times { 1.foo }", nil],
    refined_method_calling_the_old: ["class A; def foo = (EXIT); end\nmodule R; refine(A) { def foo = (super; EXIT) }; end\nusing R\na = A.new\n9.times { a.foo }", "A#foo (script.rb:1)"],
    define_method_with_a_block: ["class A; define_method(:foo) { EXIT }; end\na = A.new\n9.times { a.foo }", nil],
    define_method_with_a_lambda: ["l = lambda { EXIT }\nclass A; end\nA.define_method(:foo, &l)\na = A.new\n9.times { a.foo }", nil],
    define_method_with_a_method: ["class A; def foo = (EXIT); define_method(:bar, instance_method(:foo)); end\na = A.new\n9.times { a.bar }", "A#foo (script.rb:1)"],
    define_singleton_method: ["class A; end\nA.define_singleton_method(:foo) { EXIT }\n9.times { A.foo }", nil],
    one_block_defined_as_two_methods: ["b = proc { EXIT }\nclass A; end\nclass B; end\nA.define_method(:foo, &b)\nB.define_method(:bar, &b)\n8.times { A.new.foo; B.new.bar }", nil],
    alias: ["class A; def foo = (EXIT); alias bar foo; end\na = A.new\n9.times { a.bar }", "A#foo (script.rb:1)"],
    alias_method_of_a_superclass: ["class A; def foo = (EXIT); end\nclass B < A; alias_method :bar, :foo; end\nb = B.new\n9.times { b.bar }", nil],
    alias_of_a_module_method_in_a_class: ["module M; def foo = (EXIT); end\nclass B; include M; alias bar foo; end\nb = B.new\n9.times { b.bar }", nil],
    method_moved_to_another_class: ["module M; def foo = (EXIT); end\nclass B; define_method(:bar, M.instance_method(:foo)); end\nb = B.new\n9.times { b.bar }", nil],
    operators: ["class A; def +(o) = (EXIT); def []=(i, v); EXIT; end; def -@ = (EXIT); def call = (EXIT); end\na = A.new\n9.times { a + 1; a[0] = 1; -a; a.() }", nil],
    setter: ["class A; def foo=(v); EXIT; end; end\na = A.new\n9.times { a.foo = 1 }", "A#foo= (script.rb:1)"],
    private_and_predicate_methods: ["class A; def bar = foo?; private def foo? = (EXIT); end\na = A.new\n9.times { a.bar }", "A#foo? (script.rb:1)"],
    method_missing: ["class A; def method_missing(*) = (EXIT); end\na = A.new\n9.times { a.foo }", "A#method_missing (script.rb:1)"],
    initialize: ["class A; def initialize = (EXIT); end\n9.times { A.new }", "A#initialize (script.rb:1)"],
    to_s_in_interpolation: ["class A; def to_s = (EXIT; 'a'); end\na = A.new\n9.times { \"\#{a}\" }", "A#to_s (script.rb:1)"],
    optional_and_keyword_arguments: ["def foo(a = (EXIT), b: (EXIT))\nEXIT\nend\n9.times { foo }", nil],

    block: ["9.times { EXIT }", "block in <main> (script.rb:1)"],
    block_in_a_method: ["def foo = 9.times { EXIT }\n9.times { foo }", "block in Object#foo (script.rb:1)"],
    nested_block: ["def foo = 2.times { 2.times { EXIT } }\n9.times { foo }", "block (2 levels) in Object#foo (script.rb:1)"],
    thrice_nested_block: ["def foo = 2.times { 2.times { 2.times { EXIT } } }\nfoo", "block (3 levels) in Object#foo (script.rb:1)"],
    block_in_a_singleton_method: ["class A; def self.foo = 9.times { EXIT }; end\nA.foo", "block in A.foo (script.rb:1)"],
    block_in_a_class_body: ["class A\n  9.times { EXIT }\nend", "block in <class:A> (script.rb:2)"],
    block_in_a_module_body: ["module M\n  9.times { EXIT }\nend", "block in <module:M> (script.rb:2)"],
    block_in_a_singleton_class: ["class A\n  class << self\n    9.times { EXIT }\n  end\nend", "block in singleton class (script.rb:3)"],
    lambda: ["l = -> { EXIT }\n9.times { l.() }", "block in <main> (script.rb:1)"],
    proc_called_elsewhere: ["def make = proc { EXIT }\ndef call(p) = p.call\nb = make\n9.times { call(b) }", "block in Object#make (script.rb:1)"],
    block_passed_on: ["def foo(&b) = bar(&b)\ndef bar = yield\n9.times { foo { EXIT } }", "block (2 levels) in <main> (script.rb:3)"],
    symbol_to_proc: ["class A; def foo = (EXIT); end\na = [A.new] * 4\na.each(&:foo)", "A#foo (script.rb:1)"],
    method_to_proc: ["def foo(x) = (EXIT)\n(1..9).to_a.each(&method(:foo))", "Object#foo (script.rb:1)"],
    instance_exec: ["9.times { 'x'.instance_exec(1) { |x| EXIT } }", "block (2 levels) in <main> (script.rb:1)"],
    class_exec: ["9.times { String.class_exec { EXIT } }", "block (2 levels) in <main> (script.rb:1)"],
    method_called_in_a_rescue_body: ["def bar = (EXIT)\ndef foo\n  raise 'x'\nrescue\n  bar\nend\n9.times { foo }", "Object#bar (script.rb:1)"],
    rescue_in_a_block: ["9.times do\n  raise 'x'\nrescue\n  9.times { EXIT }\nend", nil],
    block_in_a_rescue_body: ["def foo\n  raise 'x'\nrescue\n  9.times { EXIT }\nend\nfoo", "block in Object#foo (script.rb:4)"],
    ensure_body: ["def foo\n  1.to_s\nensure\n  EXIT\nend\n9.times { foo }", "Object#foo (script.rb:4)"],
    block_in_an_ensure_body: ["def foo\n  raise 'x'\nensure\n  9.times { EXIT }\nend\nbegin\n  foo\nrescue\nend", "block in Object#foo (script.rb:4)"],
    for_loop: ["for i in 1..4\n  EXIT\nend", nil],

    # Methods in C in between: they have the line of their caller.
    c_method_with_a_block: ["9.times { [3, 1].sort_by { |x| EXIT; x } }", "block (2 levels) in <main> (script.rb:1)"],
    c_method_of_a_module: ["9.times { { a: 1 }.inject(0) { |x, y| EXIT; 1 } }", "block (2 levels) in <main> (script.rb:1)"],
    two_c_methods: ["9.times { [[2], [1]].sort_by { |x| x.max_by { |y| EXIT; y } } }", "block (3 levels) in <main> (script.rb:1)"],
    c_singleton_method: ["class A; def <=>(o) = (EXIT; 0); include Comparable; end\na = A.new\n9.times { a == A.new; a.clamp(a, a) }", "A#<=> (script.rb:1)"],
    c_method_that_calls_a_method: ["class A; def each = (EXIT; yield 1); include Enumerable; end\na = A.new\n9.times { a.each_slice(2).to_a; a.map { |x| x } }", "A#each (script.rb:1)"],
    c_alias: ["class Array; alias my_sort_by sort_by; end\n9.times { [1].my_sort_by { |x| EXIT; x } }", "block (2 levels) in <main> (script.rb:2)"],
    send: ["def foo = (EXIT)\n9.times { send(:foo); public_send(:then) { foo }; __send__(:foo) }", "Object#foo (script.rb:1)"],
    method_object: ["def foo = (EXIT)\nm = method(:foo)\n9.times { m.call; m.unbind.bind_call(self) }", "Object#foo (script.rb:1)"],
    class_new_with_a_block: ["9.times { Class.new { EXIT } }", "block (2 levels) in <main> (script.rb:1)"],
    hooks: ["class A; def self.inherited(k) = (EXIT); def self.method_added(m) = (EXIT); def self.const_missing(n) = (EXIT); end\n9.times { Class.new(A); A::X\nclass A; def bar; end; end }", "A.inherited (script.rb:1)"],
    catch: ["9.times { catch(:x) { EXIT; throw :x } }", "block (2 levels) in <main> (script.rb:1)"],
    struct_and_data: ["S = Struct.new(:a) { def foo = (EXIT) }\nD = Data.define(:a) { def foo = (EXIT) }\n9.times { S.new(1).foo; D.new(1).foo }", "S#foo (script.rb:1)"],
    internal_methods: ["9.times { 1.tap { [1].each { [1].map { 1.then { EXIT } } } } }", "block (5 levels) in <main> (script.rb:1)"],
    fiber: ["f = Fiber.new { loop { EXIT; Fiber.yield } }\n9.times { f.resume }", "block (2 levels) in <main> (script.rb:1)"],
    enumerator: ["e = Enumerator.new { |y| loop { EXIT; y << 1 } }\n9.times { e.next }", "block (2 levels) in <main> (script.rb:1)"],
    thread: ["Thread.new { 9.times { EXIT } }.join", "block (2 levels) in <main> (script.rb:1)"],
    at_exit: ["at_exit { 9.times { EXIT }\n$notes.each { |stack| puts stack.map { |at| \"\#{at.label} (\#{at.path}:\#{at.lineno})\" }.join(\"\\t\") } }", "block (2 levels) in <main> (script.rb:1)"],

    eval: ["eval('9.times { EXIT }')", nil],
    eval_of_a_method: ["eval(\"def foo\\nEXIT\\nend\")\n9.times { foo }", "Object#foo ((eval at script.rb:1):2)"],
    eval_with_a_place: ["eval('def foo = (EXIT)', nil, 'some/where.rb', 100)\n9.times { foo }", "Object#foo (some/where.rb:100)"],
    eval_with_a_binding: ["def foo = binding\n9.times { foo.eval('9.times { EXIT }') }", nil],
    instance_eval_of_text: ["o = Object.new\no.instance_eval('def foo = (EXIT)')\n9.times { o.foo }", nil],
    class_eval_of_text: ["String.class_eval('def foo = (EXIT)')\n9.times { 'x'.foo }", "String#foo ((eval at script.rb:1):1)"],
    line_numbers_given_by_hand: ["eval(\"def foo\\nEXIT\\nend\", nil, 'x', -10)\n9.times { foo }", nil],
  }.each do |name, (body, expected)|
    define_method("test_#{name}_reads_as_in_a_backtrace") do
      assert_reads_as_backtrace(body, expected)
    end
  end

  # What a block defines has the method's name, as for TracePoint; a backtrace says in which code the block stands. Only
  # where a JIT has compiled it for all of its methods and exits, it has that name, too.
  def test_methods_that_one_block_defines_are_told_apart
    result = run_ruby(<<~'RUBY', "--zjit", "--zjit-call-threshold=2", "--vm-trace=calls,samples:1ms", "--vm-trace-file=%p.fxt")
      def spin(seconds)
        from = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        (i = 0; i += 1 while i < 100_000) while Process.clock_gettime(Process::CLOCK_MONOTONIC) - from < seconds
      end
      class A
        %i[cheap costly].each { |name| define_method(name) { name == :costly ? 1.times { spin(0.1) } : 0 } }
        define_singleton_method(:single) { 0 }
      end
      a = A.new
      50.times { a.cheap }
      A.single
      a.costly
    RUBY
    assert_predicate result.status, :success?, result.err
    calls = result.trace.in_category("call").map { |event| event["name"] }.grep(/(?:\A| )A[#.]/).tally
    assert_equal({ "A#cheap (script.rb:6)" => 50, "A#costly (script.rb:6)" => 1, "block in A#costly (script.rb:6)" => 1,
                   "A.single (script.rb:7)" => 1 }, calls)
    callers = result.trace.query(<<~'SQL').map(&:first) # there may be samples of the class's body
      SELECT DISTINCT above.name FROM stack_profile_callsite c JOIN stack_profile_frame f ON f.id = c.frame_id
        JOIN stack_profile_callsite parent ON parent.id = c.parent_id
        JOIN stack_profile_frame above ON above.id = parent.frame_id
      WHERE f.name IN ('Object#spin', 'Integer#times') ORDER BY 1
    SQL
    assert_equal ["A#costly", "block in A#costly"], callers - ["<main>"]
  end

  def test_names_that_are_not_ascii_read_as_they_are
    assert_reads_as_backtrace(<<~'RUBY', "Größe#länge_μ? (script.rb:2)")
      class Größe
        def länge_μ? = (EXIT)
        def 日本語 = 2.times { EXIT }
        define_method("with space") { EXIT }
      end
      g = Größe.new
      9.times { g.länge_μ?; g.日本語; g.send("with space") }
    RUBY
  end

  def test_a_path_that_is_not_ascii_reads_as_it_is
    assert_reads_as_backtrace("def foo = (EXIT)\n9.times { foo }", "Object#foo (плохой \"путь\" 日.rb:1)", name: "плохой \"путь\" 日.rb")
  end

  def test_a_required_file_is_named_and_its_top_too
    assert_reads_as_backtrace("require './other'\n", files: { "other.rb" => "def foo = (#{EXIT})\n9.times { foo }\n" })
  end

  def test_a_loaded_file_is_named
    assert_reads_as_backtrace("9.times { load './other.rb' }\n", files: { "other.rb" => "def foo = (#{EXIT})\n9.times { foo }\n" })
  end
end
