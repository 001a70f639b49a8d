# What can be run: our own programs by name, any script, any folder of scripts.

require_relative "side"

module Bench
  module Workloads
    OURS = File.expand_path("../workloads", __dir__)

    module_function

    def names
      paths.keys
    end

    # Small programs, which need nothing but Ruby.
    def small
      names.reject { |name| paths[name].include?("/applications/") }.map { |name| ours(name) }
    end

    # {name => file}: the small ones first.
    def paths
      @paths ||= Dir["#{OURS}/{,applications/}*.rb"].sort_by { |path| [path.count("/"), path] }
                   .to_h { |path| [File.basename(path, ".rb"), path] }
    end

    # First line of a workload: the question that it asks.
    def question(name)
      File.open(paths.fetch(name), &:gets).to_s.sub(/\A#\s*/, "").strip
    end

    def find(arguments)
      return names.map { |name| ours(name) } if arguments.empty?
      list = arguments.flat_map { |argument| expand(argument) }.uniq(&:path)
      shorten(list)
    end

    def expand(argument)
      if File.directory?(argument)
        paths = Dir["#{argument}/*.rb"].sort
        raise BadArgument, "#{argument}: the folder holds no .rb file" if paths.empty?
        paths.map { |path| script(path) }
      elsif File.file?(argument)
        [script(argument)]
      elsif names.include?(argument)
        [ours(argument)]
      else
        raise BadArgument, "#{argument}: no such workload, script or folder; ours are: #{names.join(' ')}"
      end
    end

    def ours(name)
      Workload.new(name, paths.fetch(name), [])
    end

    def script(path)
      Workload.new(path, File.expand_path(path), [])
    end

    # Scripts are named by their file, if that name is unique.
    def shorten(list)
      counts = list.map { |workload| File.basename(workload.name, ".rb") }.tally
      list.each do |workload|
        short = File.basename(workload.name, ".rb")
        workload.name = short if counts[short] == 1
      end
    end
  end
end
