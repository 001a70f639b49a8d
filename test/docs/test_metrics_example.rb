# The alerts and the dashboard of examples/metrics, with a real Prometheus: a traced program's metrics go through
# the textfile collector of the node exporter, and every expression finds them.
require "minitest/autorun"
require "json"
require "net/http"
require "open3"
require "socket"
require "tmpdir"
require "yaml"
require_relative "../waiting"

class TestMetricsExample < Minitest::Test
  include Waiting

  TOP = File.expand_path("../..", __dir__)
  EXAMPLE = File.join(TOP, "examples/metrics")
  TOOL = File.join(TOP, "build/tool/vm-trace")
  PROGRAMS = %w[prometheus prometheus-node-exporter promtool].freeze

  def setup
    missing = PROGRAMS.reject { |program| system("which", program, out: File::NULL) }
    skip "#{missing.join(", ")} not installed (Debian: prometheus, prometheus-node-exporter)" if missing.any?
    @dir = Dir.mktmpdir
    @pids = []
  end

  def teardown
    @pids&.each { |pid| Process.kill(:KILL, pid) && Process.wait(pid) }
    FileUtils.rm_rf(@dir) if @dir
  end

  def test_alerts
    %w[check test].zip(%w[alerts.yml alerts_test.yml]) do |word, file|
      out, status = Open3.capture2e("promtool", word, "rules", file, chdir: EXAMPLE)
      assert_predicate status, :success?, out
    end
  end

  def test_every_expression_finds_the_metrics_of_a_traced_program
    skip ENV["NO_RUBY"] if ENV["NO_RUBY"]
    write_metrics
    exporter, server = free_ports(2)
    start("prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
          "--collector.textfile.directory=#{@dir}", "--web.listen-address=127.0.0.1:#{exporter}")
    File.write("#{@dir}/prometheus.yml", <<~YAML)
      global: {scrape_interval: 1s, evaluation_interval: 1s}
      rule_files: [#{EXAMPLE}/alerts.yml]
      scrape_configs: [{job_name: node, static_configs: [{targets: ["127.0.0.1:#{exporter}"]}]}]
    YAML
    start("prometheus", "--config.file=#{@dir}/prometheus.yml", "--storage.tsdb.path=#{@dir}/data",
          "--web.listen-address=127.0.0.1:#{server}")
    @server = server
    await("metrics are there") { query("vm_trace_processes").any? }
    exits = query("sum(vm_trace_exits)").first["value"].last.to_i
    assert_equal File.read("#{@dir}/vm.prom").scan(/^vm_trace_exits\{.*\} (\d+)$/).sum { |(count)| count.to_i }, exits
    assert_operator exits, :>, 0
    expressions.each { |expression| await(expression) { query(expression).any? } }
    assert_equal 3, rules.size
    await("rules are evaluated") { rules.all? { |rule| rule["health"] == "ok" } }
  end

  private

  def rules = get("/api/v1/rules")["data"]["groups"].flat_map { |group| group["rules"] }

  # Of the dashboard's panels, and the left sides of alerts, which are numbers whether there is an alert or not.
  def expressions
    targets = JSON.parse(File.read("#{EXAMPLE}/dashboard.json"))["panels"].flat_map { |panel| panel["targets"] }
    panels = targets.map { |target| target["expr"] }
    alerts = YAML.load_file("#{EXAMPLE}/alerts.yml")["groups"].flat_map { |group| group["rules"] }
    sides = alerts.flat_map { |rule| rule["expr"].split(" or ") }.map { |side| side.sub(/ > [\d.]+\s*\z/, "") }
    assert_equal 4, sides.size
    (panels.map { |text| text.gsub("$service", "demo") } + sides).reject do |text|
      # Nothing was lost, and no code of this program has as many versions as it may have.
      text.include?("vm_trace_lost_events") || text.include?("at_version_limit")
    end
  end

  def write_metrics
    ruby = File.join(TOP, "build", ENV.fetch("BASE", "ruby-4.0"), "ruby")
    script = "GC.start; Thread.new { sleep 0.01 }.join; load 'examples/demo.rb'"
    out, status = Open3.capture2e(ruby, "--yjit", "--yjit-call-threshold=2", "--vm-trace=default,states,compiles",
                                  "--vm-trace-file=#{@dir}/demo.fxt", "--vm-trace-quiet", "-e", script, chdir: TOP)
    assert_predicate status, :success?, out
    out, status = Open3.capture2e(TOOL, "metrics", "-o", "#{@dir}/vm.prom", "--labels", 'service="demo"', @dir)
    assert_predicate status, :success?, out
  end

  def free_ports(count)
    servers = Array.new(count) { TCPServer.new("127.0.0.1", 0) }
    servers.map { |server| server.addr[1] }
  ensure
    servers&.each(&:close)
  end

  def start(*command)
    @pids << Process.spawn(*command, %i[out err] => "#{@dir}/#{command.first}.log", chdir: @dir)
  end

  def get(path) = JSON.parse(Net::HTTP.get(URI("http://127.0.0.1:#{@server}#{path}")))

  def query(expression)
    answer = get("/api/v1/query?query=#{URI.encode_www_form_component(expression)}")
    assert_equal "success", answer["status"], "#{expression}: #{answer["error"]}"
    answer["data"]["result"]
  end

  def last_words = Dir["#{@dir}/*.log"].map { |log| File.read(log).lines.last(5).join }.join

  # A server that starts refuses connections, closes them, or answers with a text.
  NOT_READY = [SystemCallError, EOFError, Net::ReadTimeout, JSON::ParserError].freeze

  def await(what)
    wait_until(what, every: 0.2) do
      yield
    rescue *NOT_READY
      false
    end
  rescue Minitest::Assertion => e
    flunk "#{e.message}\n#{last_words}"
  end
end
