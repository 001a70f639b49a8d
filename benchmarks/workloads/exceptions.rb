# What do raise, rescue and ensure cost?
require_relative "../inside"

class Refused < StandardError; end

def ask(i)
  raise Refused, "no" if i % 3 == 0
  i
end

def try(i)
  ask(i)
rescue Refused
  0
ensure
  i + 1
end

VMTraceBench.iterate { 40_000.times { |i| try(i) } }
