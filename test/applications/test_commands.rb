# Programs that run to their end: an RSpec suite, RuboCop on a folder, a site of Jekyll.
# Level: all. Minutes.
require_relative "helper"

class TestCommands < Applications::Test
  # What a program prints of time, processes and memory.
  def without_times(text) = text.gsub(/\d+\.\d+ seconds|\d+ of \d+ MB/, "TIME").gsub(/\(files took .* to load\)/, "")

  # Runs it untraced and traced, and compares status, output, and what the block returns of the folder.
  def compare(dir, jit, *command, traced: STREAMS)
    seen = [nil, traced].map do |streams|
      outcome = run_command(dir, jit, *command, traced: streams)
      [outcome, outcome.status.exitstatus, without_times(outcome.out.gsub(dir, "DIR")), (yield if block_given?)]
    end
    assert_equal seen[0].drop(1), seen[1].drop(1)
    seen[1].first
  end

  each_jit "rspec" do |jit|
    outcome = compare(application("rspec"), jit, *%w[bundle exec rspec --order defined --format documentation])
    assert_includes outcome.out, "204 examples, 1 failure, 1 pending"
  end

  # Its own folder of rules, in processes side by side.
  each_jit "rubocop" do |jit|
    dir = application("rubocop")
    Dir[File.join(Integration::ROOT, "test/integration/test_[c-g]*.rb")].each { |file| FileUtils.cp(file, dir) }
    outcome = compare(dir, jit, *%w[bundle exec rubocop --cache false --format simple])
    assert_match(/files inspected, \d+ offenses detected/, outcome.out)
  end

  each_jit "jekyll" do |jit|
    dir = application("jekyll")
    Dir.mkdir(File.join(dir, "_posts"))
    30.times do |i|
      body = "Some *text* and `code`.\n\n```ruby\ndef m(a) = a + #{i}\n```\n\n" * (i + 1)
      text = "---\ntitle: Note #{i}\nlayout: page\n---\n#{body}"
      File.write(File.join(dir, "_posts", "2026-01-#{"%02d" % (i + 1)}-note-#{i}.md"), text)
    end
    compare(dir, jit, *%w[bundle exec jekyll build --quiet]) do
      pages = Dir[File.join(dir, "_site/**/*.html")].sort
      assert_equal 31, pages.size
      pages.to_h { |path| [path, File.read(path)] }
    end
  end
end
