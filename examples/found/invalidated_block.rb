# A constant is defined whose name another constant has, and from then on a method leaves YJIT's code
# each time it is called: see doc/guide/found.md.
N = Object.new
def get(hash, key) = hash.fetch(key, N)

def call_often(hash, times)
  i = 0
  while i < times
    get(hash, :a)
    i += 1
  end
end

def seconds
  start = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  yield
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - start
end

CALLS = Integer(ARGV[0] || 20_000)
hash = { a: 1 }
before = Array.new(3) { seconds { call_often(hash, CALLS) } }.min
compiled = RubyVM::YJIT.runtime_stats(:compiled_block_count) if defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled?
call_often(hash, 0)

module Other
  N = 1
end

call_often(hash, CALLS)
puts "blocks compiled since: #{RubyVM::YJIT.runtime_stats(:compiled_block_count) - compiled}" if compiled
after = Array.new(3) { seconds { call_often(hash, CALLS) } }.min
puts "a call took %.1f ns before, %.1f ns after" % [before, after].map { |time| time / CALLS * 1e9 }
