# What a trace of calls adds up to, computed from all calls at once: the tool knows each call only when it
# returns. Times are milliseconds, or whatever the calls have.
class CallsReference
  SUSPENDED = "(fiber suspended)" # no call, and nobody's own time
  Call = Struct.new(:thread, :name, :from, :to, :children, :parent)

  attr_reader :roots

  # calls: [thread, name, from, to], in any order. The window is from since to before till.
  def initialize(calls, since: -Float::INFINITY, till: Float::INFINITY)
    @since, @till = since, till
    @calls = calls.map { |thread, name, from, to| Call.new(thread, name, from, to, [], nil) }
    @calls.group_by(&:thread).each_value do |all|
      open = []
      all.sort_by(&:from).each do |call|
        open.pop while open.any? && open.last.to <= call.from
        call.parent = open.last
        call.parent&.children&.push(call)
        open << call
      end
    end
    @counted = @calls.reject { |call| call.to < since || call.from >= till }
  end

  def time(call) = [[call.to, @till].min - [call.from, @since].max, 0].max
  def own(call) = time(call) - call.children.sum { |child| time(child) }

  def called = @counted.reject { |call| call.name == SUSPENDED }

  def ancestors(call) = Enumerator.produce(call.parent) { |c| c&.parent }.take_while(&:itself)

  def depth = @calls.map { |call| ancestors(call).size }.max

  # name => [calls, total, own, max]
  def methods
    called.group_by(&:name).transform_values do |all|
      outermost = all.reject { |call| ancestors(call).any? { |a| a.name == call.name } }
      [all.size, outermost.sum { |c| time(c) }, all.sum { |c| own(c) }, all.map { |c| time(c) }.max]
    end
  end

  # [caller or nil, callee] => [calls, total, own]
  def pairs
    called.group_by { |c| [c.parent&.name, c.name] }.transform_values do |all|
      [all.size, all.sum { |c| time(c) }, all.sum { |c| own(c) }]
    end
  end

  # thread => time in calls
  def threads
    called.group_by(&:thread).transform_values { |all| all.sum { |c| own(c) } }
  end

  # outermost;...;innermost => own time
  def stacks
    sums = Hash.new(0)
    called.each { |c| sums[[*ancestors(c).reverse, c].map(&:name).join(";")] += own(c) }
    sums.reject { |_, ns| ns.zero? }
  end

  # A random tree of calls on some threads, in whole numbers, as [thread, name, from, to]. Inner calls come
  # first.
  def self.random(seed, threads: [:main], names: 6, size: 300)
    random = Random.new(seed)
    calls = []
    threads.each do |thread|
      now = 10
      visit = lambda do |depth|
        from = now += random.rand(1..5)
        visit.(depth + 1) while depth < 12 && calls.size < size && random.rand < 0.6
        now += random.rand(1..9)
        calls << [thread, "M#m#{random.rand(names)} (/m.rb:1)", from, now]
      end
      visit.(0) while calls.size < size
      size += 300
    end
    calls
  end
end
