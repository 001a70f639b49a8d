# Falcon: a fiber for each request, on the scheduler of async.
# Level: all. Minutes.
require_relative "helper"

class TestFalcon < Applications::Test
  READS = Array.new(60) { |i| ["GET", i % 20 == 7 ? "/broken" : "/#{"x" * (i % 9)}"] }.freeze

  def drive(server) = ask_from(4, server.port, READS)

  # Requests run in fibers, and what their thread does meanwhile counts for them.
  each_jit "endpoints", jits: %w[none] do |jit|
    dir = application("falcon")
    add_gem(dir)
    config = File.join(dir, "config.ru")
    File.write(config, "require \"vm_trace\"\nuse VmTrace::Requests\n#{File.read(config)}")
    falcon = %w[bundle exec falcon serve --bind http://127.0.0.1:%PORT --count 1]
    traced = serve(dir, jit, *falcon, stop: :INT, traced: "markers,threads,fibers,gc,samples:1ms") { |server| drive(server) }
    reports = traced.traces.map { |trace| JSON.parse(vm_trace!("report", "--endpoints", "--format=json", trace["path"])) }
    report = reports.find { |one| one["endpoints"]["rows"].any? } or flunk "no requests in #{reports.size} traces"
    assert_operator report["endpoints"]["rows"].sum { |row| row["count"] }, :>=, READS.size
    costs = report["endpoint_costs"]["rows"]
    %w[ran_ns blocked_ns].each { |cost| assert_operator costs.sum { |row| row[cost] }, :>, 0, cost }
    path = traced.traces.map { |trace| trace["path"] }.find do |found|
      JSON.parse(vm_trace!("report", "--endpoints", "--format=json", found))["endpoints"]["rows"].any?
    end
    waits = JSON.parse(vm_trace!("report", "--fibers", "--format=json", path))["fiber_waits"]["rows"]
    slept = waits.find { |row| row["method"] == "Kernel#sleep" && row["location"].include?("config.ru") }
    assert_equal [true, true], [slept["scheduler"].end_with?("#kernel_sleep"), slept["count"] >= 2 * READS.size], slept
    gems = JSON.parse(vm_trace!("report", "--group=gem", "--format=json", path))["gems"]["rows"].map { |row| row["gem"] }
    # Which ones a sample of a few requests meets is chance.
    assert_operator (gems & %w[async async-http falcon io-event io-stream protocol-http1]).size, :>=, 2, gems
    app_only = JSON.parse(vm_trace!("report", "--samples", "--app-only", "--format=json", path))["samples_by_method"]["rows"]
    assert_empty app_only.map { |row| row["method"] }.grep(%r{/gems/})
  end

  each_jit "fibers" do |jit|
    dir = application("falcon")
    falcon = %w[bundle exec falcon serve --bind http://127.0.0.1:%PORT --count 2]
    untraced = serve(dir, jit, *falcon, stop: :INT) { |server| drive(server) }
    traced = serve(dir, jit, *falcon, stop: :INT, traced: STREAMS) { |server| drive(server) }
    assert_equal untraced.answers, traced.answers
    assert_operator traced.traces.size, :>=, 3
  end
end
