# `sort_by` computes one integer for each object.

class Version
  attr_reader :major, :minor

  def initialize(major, minor)
    @major = major
    @minor = minor
  end

  def key = major * 100_000 + minor
end

versions = Array.new(1_000) { |i| Version.new(i * 7919 % 31, i * 104_729 % 997) }
sum = 0
(600 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += versions.sort_by(&:key).last.minor }
puts sum
