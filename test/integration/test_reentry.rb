# Exits where Ruby code runs in the middle of something else: handlers of signals, finalizers,
# hooks, the end of the program.
require_relative "helper"

class TestReentry < Integration::Test
  WARM = <<~'RUBY'
    BIG = 2**62 - 1
    %w[main_exits handler_exits].each { |name| eval("def #{name}(x) = x + 1\n60.times { #{name}(1) }") }
    $handled = 0
    def handle(n) = n.times { handler_exits(BIG); $handled += 1 }
    def exits(n) = n.times { main_exits(BIG) }
  RUBY

  # The program prints how many exits it took in each way, one "NAME COUNT" a line.
  def assert_each_exit_once(result, rate: 1)
    told = result.out.lines.to_h { |line| line.split.then { |name, count| [name, Integer(count)] } }
    refute_empty told
    # A site without a sampled exit has no owner.
    hits = result.trace.sites("FixnumAddOverflow").group_by { |site| site["location"][/\A(?:Object#)?(\w+) /, 1] }
    told.each { |name, count| assert_equal count, hits.fetch(name, []).sum { |site| site["hits"] }, name }
    return assert_equal result.trace.summary["exits"] / rate, result.trace.summary["sampled"] if rate > 1
    frames = result.trace.exits("FixnumAddOverflow").map { |event| event["args"]["0"][/\AObject#(\w+) /, 1] }.tally
    told.each { |name, count| assert_equal count, frames.fetch(name, 0), name }
  end

  # Ruby runs the handlers of pending signals in the order of their numbers, and this one's is the highest.
  ALL_HANDLED = "trap(:PWR) { $all_handled = true }\nProcess.kill(:PWR, $$)\nsleep 0.001 until $all_handled\n"

  {
    signal_handlers: <<~'RUBY' + ALL_HANDLED,
      trap(:USR1) { handle(5) }
      200.times { Process.kill(:USR1, $$); exits(20) }
    RUBY
    # As fast as possible: many signals merge, and the program counts the handlers that ran.
    a_storm_of_signals: <<~'RUBY' + ALL_HANDLED,
      %i[USR1 USR2 WINCH CONT].each { |name| trap(name) { handle(3) } }
      pid = $$
      sender = fork { 2000.times { |i| Process.kill(%i[USR1 USR2 WINCH CONT][i % 4], pid) } }
      (exits(10); sleep 0.0005) while Process.wait(sender, Process::WNOHANG).nil?
    RUBY
    at_exit: "at_exit { handle(50) }\nat_exit { handle(30); exit 0 }\nexits(10)\n",
    finalizers: <<~'RUBY',
      finalizer = proc { handle(2) unless $told } # those of the very end run after all else
      300.times { ObjectSpace.define_finalizer(Object.new, finalizer); exits(3) }
      GC.start
      exits(10)
    RUBY
    # While there is a hook, no compiled code runs; it is entered and left by exits.
    tracepoint_hooks: <<~'RUBY',
      10.times do
        TracePoint.new(:call, :return, :line) { $seen = true }.enable { exits(5) }
        handle(5)
      end
      $handled = nil
    RUBY
    object_space_walks: "ObjectSpace.each_object(Class) { |one| handle(1); exits(1) }\n",
    method_missing_and_conversions: <<~'RUBY',
      class Odd
        def method_missing(name, *) = (handle(1); name == :to_str ? "odd" : super)
        def respond_to_missing?(*) = true
        def ==(other) = (handle(1); true)
        def hash = (handle(1); 1)
        def eql?(other) = (handle(1); true)
        def coerce(other) = (handle(1); [1, 2])
        def <=>(other) = (handle(1); 0)
      end
      50.times { "a" + Odd.new; { Odd.new => 1 }[Odd.new]; 1 + Odd.new; [Odd.new, Odd.new].sort; exits(1) }
    RUBY
    warnings_and_hooks_of_the_language: <<~'RUBY',
      def Warning.warn(*, **) = handle(1)
      class Hooked
        def self.inherited(*) = handle(1)
        def self.method_added(*) = handle(1)
        def self.const_missing(*) = handle(1)
      end
      40.times { |i| warn "x"; Class.new(Hooked); Hooked.class_eval("def m#{i} = 1"); Hooked::Nowhere; exits(1) }
    RUBY
    raising_and_rescuing: <<~'RUBY',
      class Loud < StandardError
        def initialize(*) = (handle(1); super)
        def message = (handle(1); super)
      end
      100.times { begin; raise Loud; rescue Loud => e; e.message; ensure; exits(1); end }
    RUBY
    a_throw_out_of_a_handler: <<~'RUBY',
      trap(:USR1) { handle(2); throw :out }
      100.times { catch(:out) { Process.kill(:USR1, $$); (exits(5); sleep 0.001) while true } }
    RUBY
  }.each do |name, body|
    [1, 7].each do |rate|
      define_method("test_one_exit_in_#{rate}_is_recorded_in_#{name}") do
        # The first at_exit block runs last.
        tell = "at_exit { $told = true; puts \"handler_exits \#{$handled}\" if $handled; puts 'none 0' }\n"
        result = run_traced(WARM + tell + body, "--zjit-trace-exits-sample-rate=#{rate}")
        assert_predicate result.status, :success?, result.err
        assert_empty result.own_err
        assert_each_exit_once(result, rate: rate)
      end
    end
  end
end
