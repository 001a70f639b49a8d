# A side that is one Ruby in several link orders, for `compare --layouts`. Its runs take the binaries in
# turn; everything else is that of the Ruby itself.

require "delegate"
require_relative "link_orders"

module Bench
  class SideOfOrders < SimpleDelegator
    FOLDER = File.expand_path("../../build/bench/layouts", __dir__)

    # Sides of the Rubies of build folders as sides of so many link orders. A build is linked once.
    def self.link(sides, orders:, seed:)
      builds = sides.map { |side| build_of(side) }
      out = ENV["VM_TRACE_BENCH_LAYOUTS"] || FOLDER
      linked = builds.uniq.each_with_index.to_h do |build, i|
        [build, LinkOrders.new(build, orders: orders, seed: seed).link("#{out}/compare-#{i}")]
      end
      sides.zip(builds).map { |side, build| new(side, linked[build]) }
    end

    def self.build_of(side)
      LinkOrders.build_of(side.command[0]) or
        raise BadArgument, "--layouts: #{side.name}: #{side.command[0]} is not the Ruby of a build folder with its " \
                           "object files; `make` leaves one in build/BASE/ruby"
    end

    def initialize(side, rubies)
      super(side)
      @sides = rubies.map { |ruby| Side.new(side.name, [ruby, *side.command.drop(1)].shelljoin) }
      @runs = Hash.new(0)
    end

    def run(workload, **options)
      at = @runs[workload.path]
      @runs[workload.path] += 1
      @sides[at % @sides.size].run(workload, **options)
    end
  end
end
