# Rails on Puma: threads, workers, jobs of Solid Queue in processes of their own, restarts, and a trace from outside.
# Level: all. Minutes.
require_relative "helper"

class TestRails < Applications::Test
  PUMA = %w[bundle exec puma -C puma.rb].freeze
  WRITES = Array.new(24) do |i|
    ["POST", "/notes", { title: "Note #{i} <#{"x" * (i % 50)}>", body: "some & more words " * (i % 9),
                         "tags[]" => i % 3 == 0 ? %w[a b] : "c" }]
  end.freeze
  READS = [*%w[/notes /notes.json /notes?title=1 /notes.json?title=%25 /notes/0 /nowhere /broken],
           *(1..24).map { |i| "/notes/#{i}" }].map { |path| ["GET", path] }.freeze
  INVALID = [["POST", "/notes", { title: "" }], ["POST", "/notes", { title: "x" * 41 }]].freeze

  # Rails itself turns YJIT on, if the application lets it.
  def environment(jit) = { "RAILS_ENV" => "production", "LATE_YJIT" => jit == "late" ? "1" : "0" }

  def rails
    dir = application("rails")
    made = run_command(dir, "none", "ruby", "schema.rb", env: environment("none"))
    assert_predicate made.status, :success?, made.out
    FileUtils.cp(File.join(dir, "notes.sqlite3"), File.join(dir, "empty.sqlite3"))
    dir
  end

  def serve_rails(dir, jit, env: {}, **options, &block)
    FileUtils.rm_f(Dir[File.join(dir, "notes.sqlite3*")])
    FileUtils.cp(File.join(dir, "empty.sqlite3"), File.join(dir, "notes.sqlite3"))
    serve(dir, jit == "late" ? "none" : jit, *PUMA, ready: "/notes", env: environment(jit).merge(env), **options, &block)
  end

  def drive(server, rounds: 3) = ask(server.port, WRITES + INVALID) + ask_from(3, server.port, READS * rounds)

  def compare(dir, jit, **options)
    block = ->(server) { block_given? ? yield(server) : drive(server) }
    untraced = serve_rails(dir, jit, **options, &block)
    traced = serve_rails(dir, jit, traced: STREAMS, **options, &block)
    assert_equal untraced.answers, traced.answers
    assert_equal [untraced.status.exitstatus, untraced.status.termsig], [traced.status.exitstatus, traced.status.termsig]
    assert_includes untraced.answers.map { |answer| answer[2] }, 200
    traced
  end

  each_jit("threads", jits: [*JITS.keys, "late"]) { |jit| assert_equal 1, compare(rails, jit).traces.size }

  each_jit("workers") do |jit|
    traced = compare(rails, jit, env: { "WORKERS" => "2" })
    assert_equal 3, traced.traces.size
    assert_equal 3, traced.traces.map { |trace| pid(trace) }.uniq.size
  end

  # The supervisor, a dispatcher and a worker of Solid Queue.
  each_jit("jobs") do |jit|
    traced = compare(rails, jit, env: { "JOBS" => "1" }, exit_p: false) do |server|
      answers = drive(server)
      counted = nil
      wait_until("all jobs have run", every: 0.2) do
        counted = ask(server.port, [["GET", "/jobs"]])
        counted[0].last.include?('"counted":24')
      end
      answers + counted
    end
    assert_equal 4, traced.traces.size
  end
end
