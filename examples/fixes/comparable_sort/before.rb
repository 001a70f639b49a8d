# Objects are sorted by their `<=>`, which makes two arrays for each comparison.
# Place: Version#<=>, Array#sort
# Subject: method
# JIT: any

class Version
  include Comparable
  attr_reader :major, :minor

  def initialize(major, minor)
    @major = major
    @minor = minor
  end

  def <=>(other) = [major, minor] <=> [other.major, other.minor]
end

versions = Array.new(1_000) { |i| Version.new(i * 7919 % 31, i * 104_729 % 997) }
sum = 0
(600 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += versions.sort.last.minor }
puts sum
