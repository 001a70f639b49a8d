# One Ruby linked in several orders of its object files, and two such Rubies compared over all of
# them.

require "fileutils"
require "open3"
require "shellwords"
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
        objects, command = link_inputs(build)
        stage = File.join(File.dirname(build), "#{File.basename(build).delete_suffix('obj')}stage")
        raise BadArgument, "#{stage}: no such folder: is the Ruby of #{build} installed there?" unless File.directory?("#{stage}/lib")
        [name, (0...@orders).map { |order| one(name, order, build, stage, shuffled(objects, order), command) }]
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

    private

    def shuffled(objects, order)
      order == 0 ? objects : objects.shuffle(random: Random.new(@seed * 1000 + order))
    end

    # From the build's makefile: the object files of the static library, and the command that links
    # the executable with it.
    def link_inputs(build)
      said, status = Open3.capture2e("make", "-C", build, "-n", "-W", "main.o", "-W", "dln.o", "HAVE_GIT=no", "REVISION_LATEST=x",
                                     "libruby-static.a", "ruby")
      raise BadArgument, "#{build}: make cannot say how Ruby is linked: #{said.lines.last}" unless status.success?
      archive = said.lines.find { |line| line =~ /-?ar rcD?\s+libruby-static\.a / }
      command = said.lines.find { |line| line.include?("-lruby-static") && line.rstrip.end_with?("-o ruby") }
      raise BadArgument, "#{build}: no line of its makefile links libruby-static.a" unless archive && command
      objects = Shellwords.split(archive).grep(/\.o\z/).uniq
      words = Shellwords.split(command)
      [objects - words, words]
    end

    def one(name, order, build, stage, objects, command)
      folder = "#{@out}/#{name}-#{order}"
      FileUtils.mkdir_p("#{folder}/bin")
      FileUtils.rm_f("#{folder}/lib")
      FileUtils.ln_s("#{stage}/lib", "#{folder}/lib") # a Ruby finds its library from where it stands
      words = command.flat_map { |word| word == "-lruby-static" ? objects : [word] }
      words[-1] = "#{folder}/bin/ruby"
      words.insert(1, "-Wl,--strip-debug") # which moves no code, and a binary is a tenth
      said, status = Open3.capture2e(*words, chdir: build)
      raise Failed, "linking #{folder}/bin/ruby failed: #{said.lines.last}" unless status.success?
      Side.new("#{name}-#{order}", "#{folder}/bin/ruby #{@flags}")
    end
  end
end
