# The tool, started once for many commands (serve.c): each of them runs in a process of its own, as if it had been
# started by itself, which takes several times as long as most commands.
require "fileutils"
require "open3"
require "tmpdir"

class ServedTool
  # What waitpid gave, asked as a Process::Status is.
  Status = Struct.new(:word) do
    def signaled? = word & 127 != 0
    def termsig = signaled? ? word & 127 : nil
    def exitstatus = signaled? ? nil : word >> 8
    def success? = exitstatus == 0
    def to_s = signaled? ? "signal #{termsig}" : "exit status #{exitstatus}"
  end

  ENVIRONMENT = { "LC_ALL" => "C.UTF-8", "COLUMNS" => nil }.freeze

  # As Open3.capture3 of a tool, with nothing on stdin; the outputs are bytes. build/tool/vm-trace is served by
  # build/served/vm-trace. Not for a command that leaves a process behind: its output is not waited for.
  def self.capture3(tool, *arguments)
    served = served(tool)
    served ? served.capture3(*arguments) : Open3.capture3(ENVIRONMENT, tool, *arguments, stdin_data: "", binmode: true)
  end

  # nil: none is built, or not since the tool was. A child of fork has one of its own.
  private_class_method def self.served(tool)
    path = tool.sub(%r{/build/tool/vm-trace\z}, "/build/served/vm-trace")
    return unless path != tool && File.exist?(path) && File.mtime(path) >= File.mtime(tool)
    (@served ||= {})[[path, Process.pid]] ||= new(path)
  end

  # path: of a tool that is built with serve.c; env, options: for Process.spawn
  def initialize(path, env = {}, **options)
    @io = IO.popen([{ "SERVE" => "yes", **ENVIRONMENT, **env }, path, options], "r+b")
    @mutex = Mutex.new
    @dir, creator = Dir.mktmpdir("served"), Process.pid
    at_exit { FileUtils.remove_entry(@dir) if Process.pid == creator }
  end

  # Runs a command in the current folder. Its output is then in PREFIX.out and PREFIX.err, what a counting tool counted
  # in PREFIX.work.
  def run(prefix, *arguments)
    request = [prefix, Dir.pwd, *arguments].map { |word| "#{word.b}\0" }.join
    @io.write([request.bytesize].pack("Q"), request)
    Status.new(Integer(@io.gets || raise("the served tool has ended")))
  end

  def capture3(*arguments)
    prefix = File.join(@dir, "command")
    @mutex.synchronize do
      status = run(prefix, *arguments)
      [File.binread("#{prefix}.out"), File.binread("#{prefix}.err"), status]
    end
  end
end
