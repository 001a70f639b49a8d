# A folder as a clone of ruby-bench is, small: its loader, what its harnesses share, and benchmarks that do
# little. Used with examples/ruby_bench/harness-vm-trace.
require "fileutils"

module RubyBenchFolder
  LOADER = "$LOAD_PATH << File.expand_path(__dir__)\nrequire \"harness\"\n"
  # ruby-bench's own, which the other harness must replace.
  COMMON = "def use_gemfile(**) = raise(\"not replaced\")\n"
  HARNESS = File.expand_path("../examples/ruby_bench/harness-vm-trace", __dir__)

  # benchmarks: {path below benchmarks/ => code behind the require}
  def self.make(folder, benchmarks)
    files = { "harness/loader.rb" => LOADER, "harness/harness-common.rb" => COMMON }
    files.merge!(benchmarks.to_h do |path, code|
      ["benchmarks/#{path}", "require_relative \"#{"../" * (path.count("/") + 1)}harness/loader\"\n#{code}"]
    end)
    files.each do |path, text|
      FileUtils.mkdir_p(File.dirname("#{folder}/#{path}"))
      File.write("#{folder}/#{path}", text)
    end
    folder
  end
end
