# minitest itself, with a suite that passes, fails, errs and skips.
require "minitest"
require "minitest/spec"
require "minitest/mock"

Calculation = Struct.new(:a, :b) do
  def sum = a + b
  def quotient = a / b
end

class TestMany < Minitest::Test
  100.times do |i|
    define_method(format("test_%03d", i)) do
      calculation = Calculation.new(i, i % 7)
      assert_equal i + i % 7, calculation.sum
      if i % 7 == 0
        assert_raises(ZeroDivisionError) { calculation.quotient }
      else
        assert_in_delta i.fdiv(i % 7), calculation.quotient, 1
      end
      skip "by thirty" if i % 30 == 29
      flunk "by fifty" if i % 50 == 49
      raise "by ninety" if i == 90
      assert_includes (0..i), i
      assert_output("#{i}\n") { puts i }
    end
  end
end

describe Calculation do
  before { @mock = Minitest::Mock.new }
  20.times do |i|
    it "asks #{i} times" do
      i.times { |n| @mock.expect(:+, n, [Integer]) }
      i.times { |n| _(Calculation.new(@mock, n).sum).must_equal n }
      @mock.verify
    end
  end
end

Minitest.seed = 42
srand(42)
puts Minitest.run(%w[--no-plugins --seed 42 --verbose]) # true when all passed
