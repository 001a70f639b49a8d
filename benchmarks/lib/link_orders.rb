# One Ruby linked several times, with its object files in another order each time.

require "fileutils"
require "open3"
require "shellwords"
require_relative "side"

module Bench
  class LinkOrders
    # The build folder whose Ruby an executable is: it lies there, or in the folder `stage` (or
    # `base-stage`) beside `obj`. nil if there are no object files to link.
    def self.build_of(executable)
      folder = File.dirname(File.realpath(executable))
      stage = File.dirname(folder)
      folder = "#{stage.delete_suffix('stage')}obj" if File.basename(folder) == "bin" && stage.end_with?("stage")
      folder if File.file?("#{folder}/Makefile") && File.file?("#{folder}/libruby-static.a")
    end

    # `build` is a build folder of CRuby, whose Ruby is installed.
    def initialize(build, orders:, seed:)
      @build, @orders, @seed = build, orders, seed
      @objects, @command = link_inputs
      @stage = File.join(File.dirname(build), "#{File.basename(build).delete_suffix('obj')}stage")
      unless File.directory?("#{@stage}/lib")
        raise BadArgument, "#{@stage}: no such folder: is the Ruby of #{build} installed there?"
      end
    end

    # Makes OUT-<order>/bin/ruby and returns their paths. Order 0 is the build's own.
    def link(out)
      (0...@orders).map { |order| one("#{out}-#{order}", shuffled(order)) }
    end

    private

    def shuffled(order)
      order == 0 ? @objects : @objects.shuffle(random: Random.new(@seed * 1000 + order))
    end

    # From the build's makefile: the object files of the static library, and the command that links
    # the executable with it.
    def link_inputs
      said, status = Open3.capture2e("make", "-C", @build, "-n", "-W", "main.o", "-W", "dln.o", "HAVE_GIT=no",
                                     "REVISION_LATEST=x", "libruby-static.a", "ruby")
      raise BadArgument, "#{@build}: make cannot say how Ruby is linked: #{said.lines.last}" unless status.success?
      archive = said.lines.find { |line| line =~ /-?ar rcD?\s+libruby-static\.a / }
      command = said.lines.find { |line| line.include?("-lruby-static") && line.rstrip.end_with?("-o ruby") }
      raise BadArgument, "#{@build}: no line of its makefile links libruby-static.a" unless archive && command
      objects = Shellwords.split(archive).grep(/\.o\z/).uniq
      words = Shellwords.split(command)
      [objects - words, words]
    end

    def one(folder, objects)
      FileUtils.mkdir_p("#{folder}/bin")
      FileUtils.rm_f("#{folder}/lib")
      FileUtils.ln_s("#{@stage}/lib", "#{folder}/lib") # a Ruby finds its library from where it stands
      words = @command.flat_map { |word| word == "-lruby-static" ? objects : [word] }
      words[-1] = "#{folder}/bin/ruby"
      words.insert(1, "-Wl,--strip-debug") # which moves no code, and a binary is a tenth
      said, status = Open3.capture2e(*words, chdir: @build)
      raise Failed, "linking #{folder}/bin/ruby failed: #{said.lines.last}" unless status.success?
      words[-1]
    end
  end
end
