# Falcon: a fiber for each request, on the scheduler of async.
# Level: all. Minutes.
require_relative "helper"

class TestFalcon < Applications::Test
  READS = Array.new(60) { |i| ["GET", i % 20 == 7 ? "/broken" : "/#{"x" * (i % 9)}"] }.freeze

  def drive(server) = ask_from(4, server.port, READS)

  each_jit "fibers" do |jit|
    dir = application("falcon")
    falcon = %w[bundle exec falcon serve --bind http://127.0.0.1:%PORT --count 2]
    untraced = serve(dir, jit, *falcon, stop: :INT) { |server| drive(server) }
    traced = serve(dir, jit, *falcon, stop: :INT, traced: STREAMS) { |server| drive(server) }
    assert_equal untraced.answers, traced.answers
    assert_operator traced.traces.size, :>=, 3
  end
end
