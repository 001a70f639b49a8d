# A tool that `make instrumented` built, started once for many commands (serve.c): each of them runs in a
# process of its own, as if it had been started by itself.
class ServedTool
  # status: the exit status, or nil if a signal ended it
  Result = Struct.new(:status, :signal) do
    def to_s = signal ? "signal #{signal}" : "exit status #{status}"
  end

  # env, options: for Process.spawn
  def initialize(path, env = {}, **options)
    @io = IO.popen([{ "SERVE" => "yes", **env }, path, options], "r+b")
    Minitest.after_run { @io.close }
  end

  # Runs a command. Its output is then in PREFIX.out and PREFIX.err, what a counting tool counted in PREFIX.work.
  def run(prefix, *arguments)
    request = [prefix, *arguments].map { |word| "#{word.b}\0" }.join
    @io.write([request.bytesize].pack("Q"), request)
    status = Integer(@io.gets || raise("the served tool has ended"))
    status & 127 == 0 ? Result.new(status >> 8, nil) : Result.new(nil, status & 127)
  end
end
