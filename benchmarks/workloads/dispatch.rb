# What do calls with many receivers, send and method_missing cost?
require_relative "../inside"

CLASSES = Array.new(12) do |n|
  Class.new do
    define_method(:value) { n }
    def add(x) = x + 1
    def method_missing(name, *arguments) = arguments.size
    def respond_to_missing?(*) = true
  end
end
OBJECTS = CLASSES.map(&:new).freeze

def call(object, i)
  object.add(i) + object.value + object.send(:add, 1) + object.unknown(i)
end

VMTraceBench.iterate { 40_000.times { |i| call(OBJECTS[i % 12], i) } }
