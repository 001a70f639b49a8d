# frozen_string_literal: true

module VmTrace
  # Rack middleware that saves a trace of each slow request; doc/guide/slow-requests.md explains it.
  #   use VmTrace::SlowRequests, folder: "/var/tmp/slow", ms: 500           # more than half a second
  #   use VmTrace::SlowRequests, folder: "/var/tmp/slow", percentile: 99.9  # longer than so many of the `last` 1000 took
  #   use VmTrace::SlowRequests, ms: 500                                    # into the spool of --vm-trace-spool
  # With both, more than either; with neither, each request. The folder keeps the newest `files` traces.
  class SlowRequests < Requests
    RECORD = { memory: 64, calls: true, threads: true, gc: true, markers: true }.freeze # and exits, if a JIT is on

    def initialize(app, folder: nil, ms: 0, percentile: nil, last: 1000, files: 20, record: RECORD, path: false)
      super(app, path: path)
      @folder, @ms, @last, @files, @record, @lock = folder&.to_s, ms, last, files, record, Mutex.new
      @rank = (last * percentile / 100.0).round.clamp(1, last) - 1 if percentile
      at_exit { (@queue << nil) && @saver.join if @saver && @pid == Process.pid }
    end

    def freeze = self # Rack::Builder#freeze_app; this has state
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond)

    def call(env)
      began = enter or return super
      super
    ensure
      leave(env, now - began) if began
    end

    private # whatever goes wrong here, the application goes on

    def enter
      @lock.synchronize do
        start if @pid != Process.pid # the first request of a process: workers record for themselves
        return unless @on
        @running.select! { |fiber, _| fiber.alive? } # a killed thread may have left its request here
        RubyVM::Trace.reset if @folder && @running.empty? && @waiting == 0 # others would lose what they have recorded
        @running[Fiber.current] = true
      end
      now
    rescue StandardError, NotImplementedError => e
      @on = VmTrace.tell("slow requests are not recorded: #{e.message}")
    end

    def start
      @pid, @running, @waiting, @times, @limit = Process.pid, {}.compare_by_identity, 0, [], @rank ? Float::INFINITY : @ms
      @on = true
      RubyVM::Trace.start(**@record) unless RubyVM::Trace.status[:on] # a child of fork goes on recording
      unless @folder || RubyVM::Trace.status[:spool]
        raise ArgumentError, "give folder:, or start ruby with --vm-trace-spool"
      end
      @saver = Thread.new(@queue = Queue.new) { |queue| while (slow = queue.pop) do save(*slow) end }
      @saver.name, @saver.priority = "slow requests", 3 # longer turns: no other thread gets one during a snapshot
    end

    def leave(env, ms)
      @lock.synchronize do
        @running.delete(Fiber.current)
        next unless slow?(ms) && @waiting < @files && @pid == Process.pid
        @queue << [Time.now, ms, env[TRACE_ID] || id_of(env)]
        @waiting += 1
      end
    end

    def slow?(ms)
      slow = ms > @limit
      @limit, @times = [@times.sort[@rank], @ms].max, [] if @rank && @times.push(ms).size == @last
      slow
    end

    def save(ended, ms, id) # in a thread of its own: no request waits for the disk
      @lock.synchronize { @waiting -= 1 } # resets go on: the next step is a snapshot, which they do not change
      return RubyVM::Trace.save(reason: "slow") unless @folder
      RubyVM::Trace.save(File.join(@folder.gsub("%", "%%"), name(ended.utc, ms.round, id.to_s.b)))
      old = Dir.children(@folder).grep(/\Aslow-\d{8}T.*\.fxt\z/).sort[0...-@files]
      old.each { |file| File.delete(File.join(@folder, file)) rescue nil } # another worker may do the same
    rescue StandardError => e
      VmTrace.tell("a slow request is not saved: #{e.message}")
    end

    def name(time, ms, id)
      "slow-#{time.strftime("%Y%m%dT%H%M%S.%6N")}-#{@pid}-#{ms}ms-#{id.gsub(/[^\w.-]/n, "_")[0, 64]}.fxt"
    end
  end
end
