# What does an emulator cost? Dispatch by `case`, instance variables, small integers, arrays. The
# computer has a processor with registers, flags, memory and a stack, and a display that is redrawn 60
# times a second of its time.
require_relative "../inside"

class Display
  WIDTH, HEIGHT = 64, 32
  attr_reader :frames, :checksum

  def initialize(memory)
    @memory, @pixels, @frames, @checksum = memory, Array.new(WIDTH * HEIGHT, 0), 0, 0
  end

  def redraw
    (0...HEIGHT).each do |y|
      row = y * WIDTH
      (0...WIDTH / 8).each do |column|
        bits = @memory[0x8000 + y * 8 + column]
        8.times { |bit| @pixels[row + column * 8 + bit] = bits[7 - bit] }
      end
    end
    @frames += 1
    @checksum = @pixels.each_with_index.sum { |pixel, i| pixel * (i & 255) } & 0xffff
  end
end

class Processor
  CYCLES_PER_FRAME = 2_000
  attr_reader :display, :cycles

  def initialize(program)
    @memory = Array.new(0x10000, 0)
    program.each_with_index { |byte, i| @memory[i] = byte }
    @display = Display.new(@memory)
    @a = @x = @y = @pc = @cycles = 0
    @sp = 0xff
    @zero = @carry = false
  end

  def fetch
    byte = @memory[@pc]
    @pc = (@pc + 1) & 0xffff
    byte
  end

  def fetch_word = fetch | fetch << 8

  def flags(value) = @zero = value.zero?

  def push(byte)
    @memory[0x100 + @sp] = byte
    @sp = (@sp - 1) & 0xff
  end

  def pull
    @sp = (@sp + 1) & 0xff
    @memory[0x100 + @sp]
  end

  def add(value)
    sum = @a + value + (@carry ? 1 : 0)
    @carry = sum > 0xff
    @a = sum & 0xff
    flags(@a)
  end

  def branch(taken)
    offset = fetch
    @pc = (@pc + (offset < 0x80 ? offset : offset - 0x100)) & 0xffff if taken
  end

  def step
    case fetch
    when 0x00 then return false
    when 0x01 then @a = fetch; flags(@a)
    when 0x02 then @x = fetch; flags(@x)
    when 0x03 then @y = fetch; flags(@y)
    when 0x10 then @a = @memory[(fetch_word + @x) & 0xffff]; flags(@a)
    when 0x11 then @memory[(fetch_word + @x) & 0xffff] = @a
    when 0x20 then add(fetch)
    when 0x21 then @a ^= fetch; flags(@a)
    when 0x22 then @a = (@a << 1 | @a >> 7) & 0xff; flags(@a)
    when 0x30 then @x = (@x + 1) & 0xff; flags(@x)
    when 0x31 then @y = (@y - 1) & 0xff; flags(@y)
    when 0x40 then branch(!@zero)
    when 0x41 then branch(@carry)
    when 0x50
      target = fetch_word
      push(@pc >> 8)
      push(@pc & 0xff)
      @pc = target
    when 0x51 then @pc = pull | pull << 8
    when 0x60 then @pc = fetch_word
    else raise "unknown instruction at #{@pc - 1}"
    end
    true
  end

  def run(frames)
    while @display.frames < frames
      CYCLES_PER_FRAME.times { step }
      @cycles += CYCLES_PER_FRAME
      @display.redraw
    end
    @display.checksum
  end
end

# Fills the screen with a pattern that moves, for ever.
PROGRAM = [
  0x02, 0x00,             # ldx 0
  0x50, 0x0b, 0x00,       # 0002: call 000b
  0x30,                   # inx
  0x40, 0xfa,             # bne 0002
  0x60, 0x00, 0x00,       # jmp 0000
  0x10, 0x00, 0x80,       # 000b: lda 8000,x
  0x20, 0x1d,             # adc 1d
  0x22,                   # rol
  0x21, 0x55,             # eor 55
  0x11, 0x00, 0x80,       # sta 8000,x
  0x51                    # ret
].freeze

frames = Integer(ARGV[0] || 60)
VMTraceBench.iterate(warmup: 3, runs: 8) { Processor.new(PROGRAM).run(frames) }
