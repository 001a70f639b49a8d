# Our workloads: each says what it asks and runs, or says what is missing. That is a note in the table,
# not a failure.

require_relative "bench_helper"
require "workloads"
require_relative "../../benchmarks/packages"

class TestWorkloads < BenchTest
  Packages = VMTraceBench::Packages

  def test_each_begins_with_its_question
    Bench::Workloads.names.each { |name| assert_match(/\?/, Bench::Workloads.question(name), name) }
  end

  def test_small_ones_need_no_package
    small, all = [Bench::Workloads.small, Bench::Workloads.find([])].map { |list| list.map(&:name) }
    assert_operator small.size, :>=, 16
    assert_equal small, all.first(small.size)
    assert_includes all - small, "rack_app"
    Bench::Workloads.small.each { |workload| refute_includes File.read(workload.path), "with_packages" }
  end

  def test_each_runs_an_iteration_or_says_what_is_missing
    side = Bench::Side.new("candidate", RbConfig.ruby)
    ran = Bench::Workloads.find([]).count do |workload|
      assert_equal 1, side.iterations(workload, 1).size, workload.name
    rescue Bench::NotRun => e
      refute_includes Bench::Workloads.small.map(&:name), workload.name
      assert_match(/apt-get install|cannot run in Ruby #{RUBY_VERSION}: /, e.message, workload.name)
      false
    end
    assert_operator ran, :>=, 18
  end

  def test_a_missing_package_is_a_note_with_what_to_install
    write("missing.rb", <<~RUBY)
      require "#{ROOT}/benchmarks/packages"
      VMTraceBench.with_packages("no_such-thing", "nor_this") { raise "not reached" }
    RUBY
    assert_equal "ruby", Packages.debian("rexml")
    out, = assert_compare(0, ruby("one"), ruby("two"), "-n", "3", "--json", path("out.json"), "--", path("missing.rb"),
                          made_up("work.rb"))
    assert_match(/^missing +not run$/, out)
    assert_match(/no difference seen/, row(out, "work"))
    note = "it needs ruby-no-such-thing and ruby-nor-this (Debian: apt-get install ruby-no-such-thing ruby-nor-this)"
    assert_includes out, "note: missing was not run: #{note}\n"
    refute_includes out, "failed"
    entry = JSON.parse(File.read(path("out.json")))["workloads"][0]
    assert_equal [note, nil], entry.values_at("not_run", "failure")
  end

  def test_if_nothing_was_run_nothing_is_proved
    work = write("missing.rb", %(require "#{ROOT}/benchmarks/packages"\nVMTraceBench.with_packages("no_such-thing") { }\n))
    assert_compare(4, ruby("one"), ruby("two"), "-n", "3", "--", work)
  end

  def test_a_package_that_is_too_old_for_a_ruby_says_so
    write("old.rb", <<~RUBY)
      require "#{ROOT}/benchmarks/packages"
      VMTraceBench.with_packages { require "no/such/file" }
    RUBY
    out, = assert_compare(4, ruby("one"), ruby("two"), "-n", "3", "--", path("old.rb"))
    assert_includes out, "note: old was not run: it cannot run in Ruby #{RUBY_VERSION}: cannot load such file -- no/such/file\n"
  end

  # A Ruby's own library comes first: only what it lacks is taken from the distribution's.
  def test_only_moved_parts_that_a_ruby_lacks_are_linked
    { "own" => %w[csv cgi/escape], "distribution" => %w[csv ostruct cgi cgi/cookie set] }.each do |folder, names|
      names.each { |name| write("#{folder}/#{name}.rb", "") }
    end
    files = Packages.moved(path("own"), path("distribution"))
    assert_equal %w[cgi cgi.rb ostruct.rb], files.map { |file| File.basename(file) }.sort
    FileUtils.mkdir_p(path("links"))
    assert_equal files.sort, Dir["#{Packages.link(files, path('links'))}/*"].map { |file| File.readlink(file) }.sort
  end
end
