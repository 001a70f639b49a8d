# A program that waits for another one, which takes its time: nothing can be gained here.
# Place: none
# Subject: blocked
# JIT: any

class Reader
  def sum(io) = io.each_line.sum { |line| line.to_i }
end

count = (20 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil
IO.popen(["sh", "-c", "i=0; while [ $i -lt #{count} ]; do sleep 0.05; echo $i; i=$((i + 1)); done"]) do |io|
  puts Reader.new.sum(io)
end
