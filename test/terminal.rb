# A terminal for a program under test, and all that the program writes to it.
#
# Reading the terminal until the program has closed its side may miss the last lines: Linux reports
# that end (EIO) as soon as the side is closed, and what was written just before can still be on its
# way. So the test keeps the side open, and writes a mark behind what the program wrote.
require "io/console"
require "io/wait"
require "pty"
require_relative "waiting"

class Terminal
  MARK = "\0end\0"

  attr_reader :side, :keys

  # Yields the terminal: `side` is for the program's files, what is written to `keys` is typed.
  def self.open(rows: 24, columns: 80)
    PTY.open do |keys, side|
      keys.winsize = [rows, columns]
      yield new(keys, side)
    end
  end

  def initialize(keys, side)
    @keys = keys
    @side = side
  end

  # Waits for the process. Returns what was written and not read yet, and the status.
  def wait(pid)
    waiter = Thread.new do
      Process.wait2(pid).last.tap { @side.write(MARK) }
    end
    text = +"".b
    until text.end_with?(MARK)
      raise "the program is silent and does not end" unless @keys.wait_readable(Waiting::PATIENCE_SECONDS)
      text << @keys.readpartial(65_536)
    end
    [text.delete_suffix(MARK).force_encoding("UTF-8"), waiter.value]
  end
end
