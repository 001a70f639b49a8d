# Which commit did it: a repository whose commits set the speed of its "ruby", and what `history` says of them.

require_relative "bench_helper"
require "bisection"

class TestHistory < BenchTest
  HISTORY = "#{ROOT}/benchmarks/history"
  # Its "ruby" has the speed that the file `speed` has at the commit; without one it does not build.
  BUILD = <<~SH.tr("\n", " ")
    echo built >> ../builds; test -f speed || { echo no speed; exit 1; }; mkdir $OUT/bin;
    printf '#!/bin/sh\\nSPEED=%s exec #{RbConfig.ruby} --disable=gems "$@"\\n' $(cat speed) > $OUT/bin/ruby;
    chmod +x $OUT/bin/ruby
  SH

  def setup
    super
    @repository = path("repository")
    git("init", "-q", "-b", "master", @repository, at: dir)
    @made_up = made_up("work.rb")
  end

  def git(*arguments, at: @repository)
    people = %w[AUTHOR COMMITTER].product(%w[NAME EMAIL]).to_h { |who, what| ["GIT_#{who}_#{what}", "a@example.com"] }
    out, status = Open3.capture2e(people, "git", *arguments, chdir: at)
    assert_predicate status, :success?, out
    out.chomp
  end

  # Each commit has these files; nil: the file is removed. Returns the ids.
  def commits(*list, file: "speed")
    list.each_with_index.map do |text, i|
      if text then write("repository/#{file}", text.to_s) else File.delete(path("repository/#{file}")) end
      git("add", "-A")
      git("commit", "-q", "--allow-empty", "-m", "#{file} #{text.inspect}, no. #{i}")
      git("rev-parse", "HEAD")
    end
  end

  def history(status, *arguments)
    command = [RbConfig.ruby, "--disable=gems", "-w", HISTORY, @repository, *arguments,
               "--folder", path("kept"), "--build", BUILD, "--", @made_up]
    out, err, found = Open3.capture3(*command, chdir: dir, stdin_data: "")
    assert_equal status, found.exitstatus, out + err
    [out, err]
  end

  def builds = File.exist?(path("kept/builds")) ? File.readlines(path("kept/builds")).size : 0

  # First cell => the row that begins with it.
  def rows(out, ids) = ids.to_h { |id| [id, out[/^#{id[0, 10]} .*/]] }

  def test_each_commit_is_compared_with_the_first_and_the_one_before
    ids = commits(1, 1.2, 1.2001, 0.9)
    out, = history(1, "HEAD~3..HEAD", "-n", "4", "--json", "h.json", "--plot", "h.svg")
    rows = rows(out, ids)
    assert_match(/^\S+ +\S+ +1 /, rows[ids[0]])
    assert_match(/ 1\.(19|20)\d +1\.\d+ \.\. 1\.\d+ .* slower 1\.(19|20)\d .*speed 1\.2, no\. 1$/, rows[ids[1]])
    assert_match(/ 1\.(19|20)\d /, rows[ids[2]])
    refute_match(/slower|faster/, rows[ids[2]], "as fast as the one before")
    assert_match(/ (0\.89|0\.90)\d .* faster 0\.7[45]\d /, rows[ids[3]])
    json = JSON.parse(File.read(path("h.json")))
    assert_equal ids, json["commits"].map { |one| one["commit"] }
    assert_in_delta 1.2, json["commits"][1]["workloads"]["work"]["wall"]["ratio"], 0.01
    assert_includes File.read(path("h.svg")), "<svg" if system("gnuplot", "--version", out: File::NULL, err: File::NULL)
  end

  def test_a_ruby_is_built_once_for_all_that_a_build_reads
    ids = commits(1, 1.1)
    write("repository/spec/a.txt", "text")
    ids += commits("text", file: "spec/b.txt")
    out, = history(1, "HEAD~2..HEAD", "-n", "3")
    assert_equal 2, builds
    assert_match(/ = .*b\.txt/, rows(out, ids)[ids[2]])
    history(1, "HEAD~2..HEAD", "-n", "3")
    assert_equal 2, builds
  end

  def test_a_commit_that_does_not_build_is_a_row
    ids = commits(1, nil, 1.0001)
    out, err = history(0, "HEAD~2..HEAD", "-n", "3")
    assert_match(/no Ruby/, rows(out, ids)[ids[1]])
    assert_match(/^#{ids[1][0, 10]}: it does not build \(.*\.failed has the output\)$/, out)
    assert_equal "no speed\n", File.read(Dir[path("kept/*.failed")][0])
    assert_equal 3, err.scan(/^building /).size
    before = builds
    history(0, "HEAD~2..HEAD", "-n", "3")
    assert_equal before, builds, "what failed is not tried again"
  end

  def test_bisect_builds_few_and_names_the_commit
    ids = commits(*(0..16).map { |i| (i < 11 ? 1 : 1.05) + i * 1e-6 })
    out, = history(0, "#{ids[0]}..HEAD", "-n", "4", "--bisect", "slower:3%")
    assert_includes out, "the first commit that is certainly slower than #{ids[0][0, 10]} by more than 3 % " \
                         "(6 Rubies for 17 commits):\n  #{ids[11]} "
    assert_equal 6, builds
  end

  def test_bisect_of_what_is_faster
    ids = commits(1, 1.0001, 0.9, 0.9001)
    out, = history(0, "HEAD~3..HEAD", "-n", "4", "--bisect", "faster:5%")
    assert_includes out, "\n  #{ids[2]} "
  end

  def test_bisect_finds_nothing
    ids = commits(1, 1.01, 1.0001)
    out, = history(1, "HEAD~2..HEAD", "-n", "4", "--bisect", "slower:3%")
    assert_includes out, "#{ids[2][0, 10]} is not slower than #{ids[0][0, 10]} by more than 3 %: there is nothing to find"
    assert_equal 2, builds
  end

  def test_bisect_goes_around_what_does_not_build
    ids = commits(1, 1.0001, nil, 1.1, 1.1001)
    out, = history(0, "HEAD~4..HEAD", "-n", "4", "--bisect", "slower:3%")
    assert_includes out, "\n  #{ids[3]} "
    assert_match(/^it can also be one of these, .*:\n  #{ids[2]} /, out)
  end

  def test_an_end_that_does_not_build_is_an_error
    commits(nil.to_s, 1)
    git("rm", "-q", "speed")
    git("commit", "-q", "-m", "gone")
    _, err = history(3, "HEAD~1..HEAD", "-n", "3", "--bisect", "slower:3%")
    assert_match(/^history: \h{10}: it does not build/, err)
  end

  def test_wrong_usage
    commits(1, 1.1)
    { "HEAD" => "a range is OLD..NEW", "HEAD..HEAD~1" => "not before", "none..HEAD" => "none: no commit of ",
      "HEAD..HEAD" => "no commits" }.each do |range, message|
      _, err = history(2, range)
      assert_includes err, message
    end
    _, err = history(2, "HEAD~1..HEAD", "--bisect", "slower")
    assert_includes err, "invalid argument: --bisect slower"
    _, err = history(2, "HEAD~1..HEAD", "--json", "/nonexistent/file")
    assert_includes err, "is no folder that can be written to"
  end

  # Of every length and place: few questions, and the right answer.
  def test_bisection
    (2..40).each do |size|
      (1...size).each do |first|
        asked = []
        answer = Bench::Bisection.run(size) { |at| asked << at; at >= first }
        assert_equal [first, []], answer.to_a
        assert_operator asked.size, :<=, Math.log2(size - 1).ceil
        assert_equal asked.uniq, asked
      end
    end
  end

  def test_bisection_with_unknown_answers
    answer = Bench::Bisection.run(9) { |at| at >= 5 unless [4, 7].include?(at) }
    assert_equal [5, [4]], answer.to_a
    answer = Bench::Bisection.run(9) { nil }
    assert_equal [8, [*1..7]], answer.to_a
  end
end
