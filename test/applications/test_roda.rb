# Roda and Sequel on Puma: routes are blocks that leave by `throw`, and models whose methods are made at run time.
# Level: all. Minutes.
require_relative "helper"

class TestRoda < Applications::Test
  PUMA = %w[bundle exec puma -C puma.rb].freeze
  WRITES = Array.new(20) do |i|
    [["POST", "/books", { title: "<Book #{i}>", year: 1990 + i % 7 }], ["POST", "/books/#{i + 1}/reviews", { stars: i % 9, body: "so many words " * (i % 5) }]]
  end.flatten(1).push(["POST", "/books", { title: "" }]).freeze
  READS = (%w[/ /since/1993 /since/x /stream /broken /none /books/none /books/99] + Array.new(20) { |i| "/books/#{i + 1}" })
          .map { |path| ["GET", path] }.push(["DELETE", "/books/3"]).freeze

  def drive(server) = ask(server.port, WRITES) + ask_from(3, server.port, READS * 3)

  each_jit "threads" do |jit|
    dir = application("roda")
    untraced = serve(dir, jit, *PUMA) { |server| drive(server) }
    assert_equal [200, 201, 404, 500], untraced.answers.flatten(1).grep(Integer).uniq.sort
    traced = serve(dir, jit, *PUMA, traced: "full,exits:rate=1") { |server| drive(server) }
    assert_equal untraced.answers, traced.answers
    assert_equal [untraced.status.termsig, 1], [traced.status.termsig, traced.traces.size]
  end

  each_jit "phased_restart" do |jit|
    dir = application("roda")
    traced = serve(dir, jit, *PUMA, env: { "WORKERS" => "2" }, traced: STREAMS) do |server|
      ask_from(3, server.port, READS)
      server.signal(:USR1)
      await_workers(server, 4)
      ask_from(3, server.port, READS)
    end
    assert_equal 5, traced.traces.map { |trace| pid(trace) }.uniq.size
  end
end
