# The gem vm_trace with OpenTelemetry, GraphQL, and the oldest ActiveSupport that it is for, 7.1.
# Level: all. Its gems.
require_relative "helper"

class TestTelemetry < Applications::Test
  def test_outliers_of_a_tracing_system_lead_to_their_recordings
    dir = application("telemetry")
    add_gem(dir)
    outcome = run_command(dir, "none", "bundle", "exec", "ruby", "app.rb")
    assert_predicate outcome.status, :success?, outcome.out
    printed, told = outcome.out.lines.partition { |line| line.start_with?("{") }
    result = JSON.parse(printed.fetch(0))
    assert_match(/\Avm_trace: a marker is missing: RuntimeError at .*app.rb:\d+:.*\n\z/, told.grep(/vm_trace/).join)
    round = [{ "data" => { "note" => "note 3" } }, "broken on purpose", "broken on purpose"]
    assert_equal round * 2 + %w[plain read] + round, result["answers"]
    assert_equal ["Count"] * 7, result["seen"]

    trace = Trace.new(check_traces(Dir[File.join(dir, "traces/*.fxt")]).fetch(0)["path"])
    refute_includes File.binread(trace.path), "s3cret"
    spans = spans(trace)
    first, second = spans.select { |name,| name == "request" }.map { |span| span[1] }
    ids = result["spans"].to_h { |name, *ids| [name, ids] }
    assert_equal ids["GET /"], first.values_at("trace_id", "span_id")
    refute second.key?("trace_id")
    assert_equal ["graphql Show", nil] * 2, spans.select { |name,| name == "graphql" }.map { |_, args,| args["endpoint"] }
    jobs = spans.select { |name,| name == "Count" }
    assert_equal [nil, "ArgumentError", nil, "ArgumentError", nil], jobs.map { |_, args,| args["error"] }
    assert_equal [ids["GET /"][0], nil], jobs.values_at(0, 2).map { |_, args,| args["trace_id"] }
    assert_equal [["enqueue Count", "request"]], jobs.filter_map { |_, _, around| around.reverse if around.size > 1 }.uniq
    # Though the jobs' subscription was asked for twice, each has one span.
    assert_equal 5, jobs.size
    assert_equal [["sidekiq Plain", { "endpoint" => "Plain", "queue" => "low", "job_id" => "1" }, []]],
                 spans.select { |name,| name.start_with?("sidekiq") }
    assert_empty jobs.last[2]
    assert_equal [["cache read", false], ["cache generate", nil], ["cache write", nil]],
                 spans.filter_map { |name, args,| [name, args["hit"]] if name.start_with?("cache") }.uniq
    # The name of a recording has the id by which the tracing system knows the request.
    assert_equal [ids["slow"][0]], result["slow"].map { |name| name[/ms-(.*)\.fxt/, 1] }
  end
end
