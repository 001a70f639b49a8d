# What does compiling cost? New methods in every iteration, called until they are compiled.
require_relative "../inside"

ROUND = Struct.new(:number).new(0)

def define_and_call(methods)
  round = (ROUND.number += 1)
  source = +""
  methods.times do |i|
    source << "def m#{round}_#{i}(a, b) = a.size > #{i} ? [a, b].map { |x| x.to_s + '#{i}' }.join : b[#{i % 3}].to_i + #{i}\n"
  end
  eval(source)
  40.times { methods.times { |i| send(:"m#{round}_#{i}", "abc", [1, 2, 3]) } }
end

VMTraceBench.iterate(warmup: 2, runs: 6) { define_and_call(60) }
