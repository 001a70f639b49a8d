# off.rb OPERATION COUNT: so many of one operation, for its instructions. What comes before the loop is the
# same for each count. Exits: of compiled code, once it is compiled.
operation, count = ARGV[0], Integer(ARGV[1])

def call(x) = x
def yielding = yield
def add(x) = x + 1

BIG = 2**62 - 1
TABLE = { a: 1 }
FIBER = Fiber.new { loop { Fiber.yield } }
ZERO = File.open("/dev/zero")

def run(operation, count)
  i = 0
  case operation
  when "call" then (call(i); i += 1) while i < count
  when "block" then (yielding { i += 1 }) while i < count
  when "method in C" then (TABLE.key?(:a); i += 1) while i < count
  when "allocation" then (Object.new; i += 1) while i < count
  when "fiber switch" then (FIBER.resume; i += 1) while i < count
  when "giving up the GVL" then (ZERO.sysread(1); i += 1) while i < count
  when "raise, rescue" then (begin; raise "x"; rescue; i += 1; end) while i < count
  when "ISEQ that dies" then (eval("1"); i += 1; GC.start if i % 500 == 0) while i < count
  when "exit" then (add(BIG); i += 1) while i < count
  end
end

100.times { add(1) }
2.times { run(operation, 500) }
GC.start
run(operation, count)
