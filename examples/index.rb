# An index of the words, numbers and dates of a text, in buckets by their FNV-1a hash. Its output is correct;
# doc/guide/recompilation.md shows why Index#bucket is compiled again and again and still exits.
#   ruby examples/index.rb [rounds]
require "date"

class Index
  BUCKETS = 64

  def initialize = @buckets = Array.new(BUCKETS) { [] }

  def add(key, line) = @buckets[bucket(key)] |= [line]

  def bucket(key)
    text =
      case key
      when String then key
      when Integer then key.to_s
      when Date then key.iso8601
      when Symbol then key.name
      end
    hash = 0xcbf29ce484222325
    i = 0
    while i < text.bytesize
      hash = ((hash ^ text.getbyte(i)) * 0x100000001b3) & 0xffffffffffffffff
      i += 1
    end
    hash % BUCKETS
  end

  def used = @buckets.count { |lines| !lines.empty? }
end

TEXT = <<~LINES.lines
  analytical engine notes translator
  1815 1852 1843 36 27
  1815-12-10 1852-11-27
  :author :engineer
LINES

index = Index.new
rounds = Integer(ARGV.fetch(0, "400"))
# One line after the other, as they are read: each brings a new kind of keys.
TEXT.each_with_index do |text, number|
  keys = text.split.map do |key|
    case key
    when /\A\d+\z/ then key.to_i
    when /\A\d+-/ then Date.iso8601(key)
    when /\A:/ then key.delete_prefix(":").to_sym
    else key
    end
  end
  rounds.times { keys.each { |key| index.add(key, number) } }
end
puts "#{index.used} buckets are used"
