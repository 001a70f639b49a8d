# What the tests of applications share: the application's folder and gems, a server that is started, asked and
# stopped, with and without a trace, and what must hold for the traces of all its processes.
#
# An application is a folder here with a Gemfile and its lock file. scripts/gems.sh installs the gems into the cache; a
# test whose gems cannot be had skips itself with the reason.
require_relative "../integration/helper"
require "json"
require "net/http"
require "open3"
require "socket"

module Applications
  # "none": no JIT. A program that starts others passes RUBYOPT on, and Puma's restart keeps it.
  # Low thresholds: the few requests of a test run compiled code.
  JITS = { "none" => "", "yjit" => "--yjit --yjit-call-threshold=3", "zjit" => "--zjit --zjit-call-threshold=5" }.freeze
  # All but calls and the kernel's, which are large: "full" has these, too.
  STREAMS = "default,exits:rate=1,compiles,invalidations,states,allocations,samples:1ms,fibers"

  # What the tracer says of a program that executes another one, or turns its JIT on later, or not at all; and of a
  # system with a slow clock, or without the kernel's streams.
  EXPECTED = /^(?:[YZ]JIT|vm_trace): .*
              (?:wrote\ it\ before\ exec|no\ JIT\ is\ on|the\ trace\ has\ no\ (?:syscalls|sched):|
                 #{Regexp.escape(Integration::SLOW_CLOCK)}).*\n/x

  # The program's answers to the requests, in their order; its output; the traces of its processes.
  Outcome = Struct.new(:answers, :status, :out, :traces, keyword_init: true)

  # A program that runs, in its folder.
  class Server
    attr_reader :pid, :port, :dir

    def initialize(pid, port, dir)
      @pid, @port, @dir = pid, port, dir
    end

    def out = File.read(File.join(@dir, "out.txt"), encoding: "UTF-8").scrub
    def traces = Dir[File.join(@dir, "traces/*.fxt*")].sort
    def signal(name) = Process.kill(name, @pid)

    # Pids of the processes that descend from it, itself included.
    def family
      parents = Dir["/proc/[0-9]*/stat"].to_h do |path|
        stat = File.read(path)
        [stat.to_i, stat.rpartition(")").last.split[1].to_i]
      rescue SystemCallError
        [0, 0] # it has ended
      end
      found = [@pid]
      found.each { |pid| found.concat(parents.keys.select { |child| parents[child] == pid }) }
    end
  end

  class Test < Integration::Test
    include Applications
    make_my_diffs_pretty!

    # Defines a test for each JIT: its block gets the name of the JIT. short: the JITs in `make check`.
    def self.each_jit(name, jits: JITS.keys, short: jits, &block)
      (Integration::LONG ? jits : short).each do |jit|
        define_method("test_#{name}_#{jit}") { instance_exec(jit, &block) }
      end
    end

    # The environment in which `vm-trace start` and the like find a server, whose title has overwritten its own.
    def with_control(dir)
      @control = File.join(dir, "control")
      yield
    ensure
      @control = nil
    end

    # A copy of an application, whose programs may write there.
    def application(name)
      @environment ||= environment_of(name)
      dir = scratch_dir
      FileUtils.cp_r(File.join(__dir__, name, "."), dir)
      FileUtils.cp(File.join(__dir__, "puma.rb"), dir)
      %w[traces control].each { |folder| Dir.mkdir(File.join(dir, folder)) }
      @environment["BUNDLE_GEMFILE"] = File.join(dir, "Gemfile")
      dir
    end

    GEM = File.join(Integration::ROOT, "gem")

    # Adds our gem to an application's copy, as a user does, and to its lock file, as Bundler does.
    def add_gem(dir)
      File.write(File.join(dir, "Gemfile"), "gem \"vm_trace\", path: #{GEM.dump}\n", mode: "a")
      lock = File.join(dir, "Gemfile.lock")
      text = File.read(lock)
      version = File.read(File.join(GEM, "lib/vm_trace/version.rb"))[/VERSION = "(.*?)"/, 1]
      text.sub!(/^GEM$/, "PATH\n  remote: #{GEM}\n  specs:\n    vm_trace (#{version})\n\nGEM")
      text.sub!(/^(DEPENDENCIES\n(?:  .*\n)*)/, "\\1  vm_trace!\n")
      text.sub!(/^CHECKSUMS$/, "CHECKSUMS\n  vm_trace (#{version})")
      File.write(lock, text)
    end

    # Spans of markers, whose begin and end may each have arguments: [name, arguments, those around it]
    def spans(trace)
      open = Hash.new { |hash, track| hash[track] = [] }
      trace.in_category("marker").filter_map do |event|
        stack = open[event.values_at("pid", "tid")]
        case event["ph"]
        when "B" then stack.push([event["name"], (event["args"] || {}).dup, stack.map(&:first)]) && nil
        when "E" then stack.pop.tap { |span| span[1].update(event["args"] || {}) }
        end
      end
    end

    def environment_of(name)
      gems, err, status = Open3.capture3({ "BASE" => Integration::BASE },
                                         File.join(Integration::ROOT, "scripts/gems.sh"), name)
      skip err.lines.last.to_s.chomp unless status.success?
      bin = File.dirname(File.realpath(Integration::RUBY))
      gems.chomp!
      ENVIRONMENT.merge("PATH" => "#{bin}:#{ENV["PATH"]}", "BUNDLE_PATH" => gems, "BUNDLE_USER_HOME" => "#{gems}/bundle",
                        "BUNDLE_IGNORE_CONFIG" => "1", "BUNDLE_FROZEN" => "true", "BUNDLE_VERSION" => "system",
                        "RUBY_VM_TRACE" => nil)
    end

    def options_of(traced) = ("--vm-trace=#{traced} --vm-trace-file=traces/%p.fxt --vm-trace-quiet" if traced)

    # Runs a command to its end, as `record` or a shell would start it. traced: the list of streams, or nil.
    def run_command(dir, jit, *command, traced: nil, env: {})
      env = @environment.merge("RUBYOPT" => JITS.fetch(jit), "RUBY_VM_TRACE" => options_of(traced), **env)
      result = run_in(dir, env: env, command: command)
      outcome = Outcome.new(status: result.status, out: (result.out + result.err).gsub(EXPECTED, ""))
      outcome.traces = check_traces(Dir[File.join(dir, "traces/*.fxt*")].sort) if traced
      outcome
    end

    def free_port = Addrinfo.tcp("127.0.0.1", 0).bind { |socket| socket.local_address.ip_port }

    # Runs the block with a server that answers (ready: nil: one that is asked nothing). Then the server and all its
    # processes have to end by the signal. Returns its outcome, with what the block returned as the answers.
    # exit_p: false if its children end by `exit!`.
    def serve(dir, jit, *command, traced: nil, env: {}, stop: :TERM, ready: "/", exit_p: true)
      port = free_port
      env = @environment.merge("RUBYOPT" => JITS.fetch(jit), "RUBY_VM_TRACE" => options_of(traced),
                               "PORT" => port.to_s, **env)
      pid = Process.spawn(env, *command.map { |word| word.gsub("%PORT", port.to_s) }, chdir: dir, in: File::NULL,
                          [:out, :err] => File.join(dir, "out.txt"), pgroup: true)
      ended = Process.detach(pid)
      server = Server.new(pid, port, dir)
      await_answer(server, ready, ended) if ready
      await_workers(server, env["WORKERS"].to_i)
      begin
        answers = yield server
      rescue SystemCallError, IOError, Timeout::Error => e
        ended.join(1)
        flunk "#{e.class}: #{e.message}; the server #{ended.alive? ? "runs" : "has ended: #{ended.value}"}:\n#{server.out}"
      end
      family = server.family
      server.signal(stop)
      flunk "still running after #{TIME_LIMIT} s:\n#{threads_of_group(pid).join("\n")}" unless ended.join(TIME_LIMIT)
      wait_until("all processes have ended") { family.none? { |member| alive?(member) } }
      outcome = Outcome.new(answers: answers, status: ended.value, out: server.out.gsub(EXPECTED, ""))
      refute_match(/\[BUG\]|^(?:[YZ]JIT|vm_trace): /, outcome.out)
      outcome.traces = check_traces(server.traces, exits: exit_p ? nil : [pid]) if traced
      outcome
    ensure
      end_group(pid) if pid
    end

    def alive?(pid)
      !File.read("/proc/#{pid}/stat").rpartition(")").last.lstrip.start_with?("Z")
    rescue SystemCallError
      false
    end

    def end_group(pid)
      Process.kill(:KILL, -pid)
    rescue Errno::ESRCH
      # all have ended
    end

    def await_answer(server, path, ended = nil)
      wait_until("the server answers", every: 0.05) do
        flunk "the server ended: #{server.out}" unless ended.nil? || ended.alive?
        ask(server.port, [["GET", path]]).any?
      rescue SystemCallError, EOFError
        false
      end
    end

    # A worker that is stopped while it boots ends by `exit!`, and the other one answers meanwhile.
    def await_workers(server, count)
      wait_until("all workers have booted") { server.out.scan(/Worker \d \(PID: \d+\) booted/).size >= count }
    end

    # New workers replace the old ones, one after the other, while Puma is asked.
    def restart_in_phases(dir, jit, *puma, reads)
      traced = serve(dir, jit, *puma, env: { "WORKERS" => "2" }, traced: STREAMS) do |server|
        ask_from(3, server.port, reads)
        server.signal(:USR1)
        await_workers(server, 4)
        ask_from(3, server.port, reads)
      end
      assert_equal 5, traced.traces.map { |trace| pid(trace) }.uniq.size
    end

    # What a client can see of each answer, in the order of the requests: [method, path, form or nil].
    def ask(port, requests)
      Net::HTTP.start("127.0.0.1", port, read_timeout: TIME_LIMIT, max_retries: 0) do |http|
        requests.map do |method, path, form|
          request = Net::HTTP.const_get(method.capitalize).new(path, "Host" => "application.test")
          request.form_data = form if form
          answer = http.request(request)
          [method, path, answer.code.to_i, answer["content-type"], answer["location"], answer.body]
        end
      end
    end

    # The same requests on several connections at a time.
    def ask_from(connections, port, requests)
      Array.new(connections) { Thread.new { ask(port, requests) } }.flat_map(&:value)
    end

    def vm_trace(*words)
      out, err, status = Open3.capture3({ "RUBY_VM_TRACE_CONTROL" => @control }, Trace::TOOL, *words.map(&:to_s))
      [status.exitstatus, out, err]
    end

    def vm_trace!(*words)
      status, out, err = vm_trace(*words)
      assert_equal [0, ""], [status, err], "vm-trace #{words.join(" ")}: #{out}"
      out
    end

    # Each is valid, has lost nothing, and has a report. Returns the reports. `exec` leaves no time for a summary; the
    # program that comes after it gets a file of its own. exits: pids of those that do not end by `exit!`, which leaves
    # no time, either; nil: all.
    def check_traces(paths, exits: nil)
      refute_empty paths
      paths.map do |path|
        ended = paths.none? { |other| other.start_with?("#{path}.") } &&
                (exits.nil? || exits.include?(File.basename(path).to_i))
        validated(Trace.new(path), ended: ended)
        report = JSON.parse(vm_trace!("report", "--format=json", path))
        assert_empty report["losses"]["rows"], path if ended
        report.merge("path" => path)
      end
    end

    def setting(report, name) = report["settings"]["rows"].find { |row| row["setting"] == name }&.fetch("value")
    def pid(report) = setting(report, "pid").to_i
  end
end
