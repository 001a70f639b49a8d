# The group `rails` of `make bench-rails`: what recording costs the Rails application of test/applications, in
# processor time of the whole process.

require "fileutils"
require "json"
require "tmpdir"
require_relative "gem_environment"
require_relative "recording"

module Bench
  module RailsRows
    APPLICATION = File.expand_path("../../test/applications/rails", __dir__)
    FIRST_REQUESTS, WARM_REQUESTS = 100, 2000
    STREAMS = { "default" => "default", "profile" => "profile", "K=97" => "exits:rate=97", "K=1" => "exits:rate=1" }.freeze
    PHASES = { "boot" => "start", "first_requests" => "first #{FIRST_REQUESTS} requests",
               "warm_requests" => "#{WARM_REQUESTS} further requests" }.freeze
    MOST = { %w[default boot] => 1.05, %w[default first_requests] => 1.05, %w[default warm_requests] => 1.02,
             %w[profile warm_requests] => 1.10, %w[K=1 warm_requests] => 1.15 }.freeze
    TRACE = "rails.fxt"

    private

    def rails
      gems = @options[:gems] or raise Failed, "--gems FOLDER is needed: BASE=... scripts/gems.sh rails prints it"
      Dir.mktmpdir("vm-trace-bench", @options[:folder]) do |folder|
        FileUtils.cp_r("#{APPLICATION}/.", folder)
        in_environment_of(folder, gems) do
          make_database(folder)
          { "ZJIT" => @ours, "YJIT" => with_yjit(@ours) }.each { |jit, ours| add_rails_rows(jit, ours, folder) }
        end
      end
    end

    def in_environment_of(folder, gems)
      before = ENV.to_h
      ENV.update(GemEnvironment.of(@ours.command[0], "#{folder}/Gemfile", gems))
      ENV.update("RAILS_ENV" => "production", "LATE_YJIT" => "0")
      yield
    ensure
      ENV.replace(before)
    end

    def make_database(folder)
      out = IO.popen([@ours.command[0], "schema.rb", chdir: folder, err: %i[child out]], &:read)
      raise Failed, "schema.rb: #{out.lines.first}" unless $?.success?
      FileUtils.mv("#{folder}/notes.sqlite3", "#{folder}/empty.sqlite3")
    end

    # Each round has all sides, one after the other, forwards and backwards in turn.
    def add_rails_rows(jit, ours, folder)
      base = jit == "ZJIT" ? @base : with_yjit(@base)
      sides = { "base" => [base, nil], "untraced" => [ours, nil], **STREAMS.transform_values { |streams| [ours, streams] } }
      runs = sides.transform_values { [] }
      @rounds.times do |round|
        @progress&.step(round, @rounds, 0, 1, "Rails, #{jit}")
        (round.even? ? sides : sides.to_a.reverse).each { |name, side| runs[name] << run_rails(folder, *side) }
      end
      add_phases("Rails, #{jit}: untraced / base", runs["untraced"], runs["base"], {})
      STREAMS.each_key do |name|
        most = MOST.filter_map { |(stream, phase), times| [phase, times] if stream == name }.to_h
        add_phases("Rails, #{jit}: #{name} / untraced", runs[name], runs["untraced"], most)
      end
      add_bytes_row(jit, runs["K=1"])
    end

    def run_rails(folder, side, streams)
      FileUtils.rm_f(Dir["#{folder}/{notes.sqlite3*,log.txt,#{TRACE}*}"])
      FileUtils.cp("#{folder}/empty.sqlite3", "#{folder}/notes.sqlite3")
      flags = streams ? ["--vm-trace=#{streams}", "--vm-trace-file=#{folder}/#{TRACE}", "--vm-trace-quiet"] : []
      workload = Workload.new("rails", "#{Recording::ROWS}/rails.rb", [folder, FIRST_REQUESTS.to_s, WARM_REQUESTS.to_s])
      run = side.run(workload, flags: flags).extra
      streams ? run.merge("bytes" => File.size("#{folder}/#{TRACE}"), "exits" => exits_of("#{folder}/#{TRACE}")) : run
    end

    def exits_of(trace)
      report = JSON.parse(IO.popen([ENV.fetch("VM_TRACE"), "report", "--format=json", trace], &:read))
      report.fetch("processes").fetch("rows").sum { |row| row.fetch("recorded") }
    end

    def add_phases(name, ours, base, most)
      PHASES.each do |phase, text|
        a, b = [ours, base].map { |runs| runs.map { |run| run.fetch(phase) } }
        ratios = a.zip(b).map { |x, y| x / y }
        ratio = Statistics.median(ratios)
        @rows << Row.new(name: "#{name}, #{text}", unit: "times", ours: ratio, spread: ratios.minmax, runs: ratios.size,
                         target: most[phase] && "<= #{most[phase]}", met: most[phase] && ratio <= most[phase],
                         note: "processor time of the process: %.2f s and %.2f s" % [a, b].map { |list| Statistics.median(list) })
      end
    end

    def add_bytes_row(jit, runs)
      bytes = runs.map { |run| run["bytes"] / run["exits"].to_f }
      @rows << Row.new(name: "Rails, #{jit}: bytes an exit, K=1", unit: "bytes", ours: Statistics.median(bytes), runs: bytes.size,
                       note: "%.1f MB, %.0f exits" % [Statistics.median(runs.map { |run| run["bytes"] / 1e6 }),
                                                       Statistics.median(runs.map { |run| run["exits"] })])
    end
  end
end
