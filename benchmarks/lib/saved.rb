# Measurements kept for a later comparison: --save NAME, --against NAME.

require "fileutils"
require "json"
require "time"
require_relative "machine"
require_relative "side"

module Bench
  class Saved
    FORMAT = 1
    FOLDER = File.expand_path("../../build/saved", __dir__)

    # A name is a file in build/saved; with a slash in it, a file anywhere.
    def self.path(name)
      return File.expand_path(name) if name.include?("/")
      raise BadArgument, "#{name}: a name is made of letters, digits, - _ and ., and a path has a /" unless name =~ /\A\w[\w.-]*\z/
      File.join(ENV["VM_TRACE_BENCH_SAVED"] || FOLDER, "#{name}.json")
    end

    def self.write(name, side, results)
      path = path(name)
      FileUtils.mkdir_p(File.dirname(path))
      data = {
        "format" => FORMAT, "saved" => Time.now.utc.iso8601, "command" => side.to_s, "ruby" => side.description,
        "machine" => Machine.describe,
        "workloads" => results.reject { |result| result.failure || result.candidate.empty? }.to_h do |result|
          [result.workload.name, { "path" => result.workload.path, "runs" => result.candidate.map(&:to_h) }]
        end
      }
      File.write("#{path}.new", JSON.pretty_generate(data))
      File.rename("#{path}.new", path)
      path
    end

    attr_reader :path

    def initialize(name)
      @path = Saved.path(name)
      @data = JSON.parse(File.read(@path))
      unless @data.is_a?(Hash) && @data["format"] == FORMAT && @data["workloads"].is_a?(Hash)
        raise BadArgument, "#{@path}: not a saved comparison of this version"
      end
    rescue Errno::ENOENT
      others = Dir["#{File.dirname(@path)}/*.json"].map { |file| File.basename(file, ".json") }.sort
      raise BadArgument, "#{@path}: no such saved comparison#{"; there are: #{others.join(' ')}" unless others.empty?}"
    rescue JSON::ParserError, SystemCallError => e
      raise BadArgument, "#{@path}: #{e.message.lines.first.strip}"
    end

    # Only what was saved can be compared.
    def workloads
      @data["workloads"].map { |name, entry| Workload.new(name, entry["path"], []) }
    end

    def runs
      @runs ||= @data["workloads"].transform_values do |entry|
        entry["runs"].map { |run| Measure.new(**run.transform_keys(&:to_sym)) }
      end
    end

    def side
      { "command" => @data["command"], "ruby" => @data["ruby"], "saved" => @data["saved"], "machine" => @data["machine"] }
    end

    def to_s
      "#{@data['command']} (saved #{@data['saved']})"
    end

    def description
      @data["ruby"]
    end

    def other_machine?
      Machine.fingerprint(@data["machine"]) != Machine.fingerprint(JSON.parse(JSON.generate(Machine.describe)))
    end
  end
end
