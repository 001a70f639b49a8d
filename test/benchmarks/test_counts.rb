# --instructions: what the table says of counts, which a made-up valgrind hands out, and that the
# real one, where it is installed, counts the same twice.

require_relative "bench_helper"

class TestCounts < BenchTest
  def setup
    super
    @one, @two = ruby("one"), ruby("two")
    @work = made_up("work.rb")
  end

  # A valgrind that counts what the file NAME.counts says for the ruby NAME, a line for each run of
  # work.rb, and 1,000 for anything else.
  def valgrind(**counts)
    counts.each { |name, list| write("#{name}.counts", list.join("\n") + "\n") }
    write("bin/valgrind", <<~'SH'.gsub("DIR", dir))
      #!/bin/sh
      [ "$1" = --version ] && exit 0
      out=
      while :; do
          case $1 in
          --callgrind-out-file=*) out=${1#*=}; shift ;;
          -*) shift ;;
          *) break ;;
          esac
      done
      name=DIR/$(basename "$1").counts
      count=1000
      case "$*" in
      *work.rb*)
          count=$(head -n 1 "$name")
          sed -i 1d "$name"
          echo "$VM_TRACE_BENCH_ITERATIONS" >> DIR/iterations ;;
      esac
      echo "totals: $count" > "${out%\%p}$$"
      exec "$@"
    SH
    FileUtils.chmod(0o755, path("bin/valgrind"))
    { "PATH" => "#{path('bin')}:#{ENV['PATH']}" }
  end

  def count(status, *arguments, **counts)
    options = ["--instructions", "--json", path("out.json"), *arguments]
    assert_compare(status, @one, @two, *options, "--", @work, env: valgrind(**counts))
  end

  def json = JSON.parse(File.read(path("out.json")))

  def test_more_instructions_than_the_threshold_have_status_1
    out, = count(1, one: [2_000_000, 2_000_010], two: [2_100_000, 2_100_020])
    assert_match(/^work +2,000,005 +2,100,010 +1\.0500 +\+5\.00 % +2 +0\.0010 % +more$/, out)
    assert_match(/^\(empty program\) +1,000 +1,000 +1\.0000 +\+0\.00 % +2 +0\.0000 % +no difference$/, out)
    assert_includes out, "more by more than 2 %: work\n"
    assert_includes out, "candidate / baseline, geometric mean 1.0500\n"
    entry = json["workloads"].find { |one| one["name"] == "work" }
    assert_equal ["more", [2_000_000, 2_000_010], [2_100_000, 2_100_020]],
                 entry.values_at("verdict", "baseline_instructions", "candidate_instructions")
  end

  def test_a_little_more_is_named_and_has_status_0
    out, = count(0, one: [2_000_000, 2_000_010], two: [2_010_000, 2_010_000])
    assert_match(/^work .* \+0\.50 % .* more$/, out)
    out, = count(0, one: [2_010_000, 2_010_000], two: [2_000_000, 2_000_010])
    assert_match(/^work .* -0\.50 % .* fewer$/, out)
  end

  def test_a_difference_as_between_two_runs_of_one_side_is_none
    out, = count(0, one: [2_000_000, 2_004_000], two: [2_006_000, 2_006_000])
    assert_match(/^work .* 0\.2000 % +no difference$/, out)
  end

  def test_counts_that_are_far_apart_cannot_be_judged
    out, = count(4, one: [2_000_000, 2_040_000], two: [2_000_000, 2_040_000])
    assert_match(/^work .* 2\.0000 % +counts differ too much to tell$/, out)
    assert_includes out, "cannot be judged: work\n"
  end

  # 2.1 % more, and the counts are 0.1 % apart.
  def test_the_threshold_is_held_against_the_least_that_it_can_be
    count(0, one: [2_000_000, 2_002_000], two: [2_043_000, 2_043_000])
    count(1, one: [2_000_000, 2_002_000], two: [2_070_000, 2_070_000])
  end

  def test_each_process_gets_the_number_of_iterations
    assert_compare(0, @one, @two, "--instructions=7", "-n", "1", "--", @work, env: valgrind(one: [5], two: [5]))
    assert_equal %w[7 7], File.read(path("iterations")).split
  end

  def test_several_candidates
    out, = assert_compare(1, @one, @two, ruby("three"), "--instructions", "-n", "1", "--", @work,
                          env: valgrind(one: [2_000], two: [2_000], three: [3_000]))
    assert_match(/^work +candidate 1 .* no difference$/, out)
    assert_match(/^work +candidate 2 +2,000 +3,000 +1\.5000 .* more$/, out)
  end

  def test_without_valgrind_the_package_is_named
    FileUtils.mkdir_p(path("empty"))
    _, err = assert_compare(2, @one, @two, "--instructions", "--", @work, env: { "PATH" => path("empty") })
    assert_equal "compare: --instructions: valgrind is not installed (Debian: apt-get install valgrind)\n",
                 err.lines.first
  end

  def test_what_times_is_refused
    { "--warm-up" => "--warm-up", "--time=9" => "--time", "--plot=x.svg" => "--plot" }.each do |option, name|
      _, err = assert_compare(2, @one, @two, "--instructions", option)
      assert_equal "compare: --instructions counts instructions and times nothing; #{name} does not go with it\n",
                   err.lines.first
    end
  end

  def test_the_real_one_counts_the_same_twice
    skip "valgrind is not installed" unless system("valgrind", "--version", out: File::NULL, err: File::NULL)
    skip "no C compiler" unless system("cc", "--version", out: File::NULL, err: File::NULL)
    # Hashes of strings, and names that are random.
    work = write("hashes.rb", <<~RUBY)
      require "#{ROOT}/benchmarks/inside"
      require "tmpdir"
      File.write("#{path('seeds')}", "\#{"a".hash}\n", mode: "a")
      Dir.mktmpdir { |folder| Dir.mktmpdir(nil, folder) { } }
      VMTraceBench.iterate { Array.new(5_000) { |i| ["key\#{i % 97}", i] }.to_h }
      VMTraceBench.iterate { 9_000.times { } } if $VERBOSE
    RUBY
    options = ["--instructions=1", "--json", path("out.json")]
    ruby = "#{RbConfig.ruby} --disable=gems"
    out, = assert_compare([0, 1], ruby, "#{ruby} -w", *options, "--", work)
    assert_match(/^hashes .* more$/, out)
    entry = json["workloads"].find { |one| one["name"] == "hashes" }
    assert_operator entry["apart"], :<, 0.0002, entry
    assert_operator entry["baseline_instructions"][0], :>, 1_000_000
    refute_match(/^note:/, out)
    assert_equal [4, 1], File.readlines(path("seeds")).then { |seeds| [seeds.size, seeds.uniq.size] }
  end

  def test_a_script_that_starts_ruby_is_named
    skip "valgrind is not installed" unless system("valgrind", "--version", out: File::NULL, err: File::NULL)
    out, = assert_compare(3, @one, RbConfig.ruby, "--instructions=1", "-n", "1", "--", write("empty.rb", ""))
    assert_match(/^    baseline: valgrind counted nothing: #{Regexp.escape(@one)} may be a script/, out)
  end
end
