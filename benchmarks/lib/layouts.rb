# Two Rubies, each linked in several orders of its object files, compared over all of them.

require_relative "link_orders"
require_relative "side"
require_relative "statistics"

module Bench
  class Layouts
    # builds: { ours: build folder, base: build folder }
    def initialize(builds, orders:, out:, flags:, seed:)
      @builds, @orders, @out, @flags, @seed = builds, orders, File.expand_path(out), flags, seed
    end

    # Makes OUT/<side>-<order>/bin/ruby. Order 0 is the build's own.
    def link
      @sides = @builds.to_h do |name, build|
        rubies = LinkOrders.new(build, orders: @orders, seed: @seed).link("#{@out}/#{name}")
        [name, rubies.each_with_index.map { |ruby, order| Side.new("#{name}-#{order}", "#{ruby} #{@flags}") }]
      end
    end

    # { interval:, spread: { side => slowest order / fastest }, seconds: { side => median of each
    # order } }
    def compare(workload, runs)
      binaries = @sides.flat_map { |name, sides| sides.each_with_index.map { |side, order| [name, order, side] } }
      times = Hash.new { |hash, key| hash[key] = [] }
      random = Random.new(@seed)
      # The first round fills the page cache. The order of the binaries differs in each of the
      # others, so drift falls on all alike.
      (0..runs).each do |round|
        binaries.shuffle(random: random).each do |name, order, side|
          measure = side.run(workload)
          times[[name, order]] << measure.seconds if round > 0
        end
      end
      seconds = @sides.keys.to_h { |name| [name, (0...@orders).map { |order| Statistics.median(times[[name, order]]) }] }
      { interval: Statistics.unpaired_interval(seconds[:base], seconds[:ours]),
        spread: seconds.transform_values { |list| list.max / list.min }, seconds: seconds }
    end
  end
end
