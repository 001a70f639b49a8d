# Roda and Sequel on Puma: routes are blocks that leave by `throw`, and models whose methods are made at run time.
# Level: all. Minutes.
require_relative "helper"

class TestRoda < Applications::Test
  PUMA = %w[bundle exec puma -C puma.rb].freeze
  BOOKS = Array.new(20) { |i| { title: "<Book #{i}>", year: 1990 + i % 7 } }.freeze
  REVIEWS = Array.new(20) { |i| { stars: i % 9, body: "so many words " * (i % 5) } }.freeze
  WRITES = BOOKS.zip(REVIEWS).each_with_index.flat_map do |(book, review), i|
    [["POST", "/books", book], ["POST", "/books/#{i + 1}/reviews", review]]
  end.push(["POST", "/books", { title: "" }]).freeze
  PATHS = (%w[/ /since/1993 /since/x /stream /broken /none /books/none /books/99] +
           (1..20).map { |id| "/books/#{id}" }).freeze
  READS = PATHS.map { |path| ["GET", path] }.push(["DELETE", "/books/3"]).freeze

  def drive(server) = ask(server.port, WRITES) + ask_from(3, server.port, READS * 3)

  each_jit "threads" do |jit|
    dir = application("roda")
    untraced = serve(dir, jit, *PUMA) { |server| drive(server) }
    assert_equal [200, 201, 404, 500], untraced.answers.flatten(1).grep(Integer).uniq.sort
    traced = serve(dir, jit, *PUMA, traced: "full,exits:rate=1") { |server| drive(server) }
    assert_equal untraced.answers, traced.answers
    assert_equal [untraced.status.termsig, 1], [traced.status.termsig, traced.traces.size]
  end

  each_jit("phased_restart") { |jit| restart_in_phases(application("roda"), jit, *PUMA, READS) }
end
