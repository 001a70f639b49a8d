# A ledger: entries of three kinds are read from text, each kind with fields of its own, and totals are printed per account. It is what
# doc/recompilation.md looks at: what is read is right, and yet Entry#amount_in is compiled again and again.
#   ruby examples/ledger.rb [rounds]
class Entry
  attr_reader :account

  def initialize(line)
    kind, @account, *fields = line.split
    case kind
    when "fee"
      @note = fields.shift
      @cents = Integer(fields.shift)
    when "sale"
      @item = fields.shift
      @pieces = Integer(fields.shift)
      @cents = Integer(fields.shift)
    when "refund"
      @item = fields.shift
      @cents = -Integer(fields.shift)
      @note = fields.shift
    when "transfer"
      @from = fields.shift
      @to = fields.shift
      @note = fields.shift
      @cents = Integer(fields.shift)
    when "interest"
      @rate = Float(fields.shift)
      @cents = Integer(fields.shift)
    end
  end

  def amount = @cents
end

class Ledger
  def initialize = @totals = Hash.new(0)

  def add(entry)
    @totals[entry.account] += entry.amount
  end

  def to_s = @totals.sort.map { |account, cents| "#{account} #{cents}" }.join("\n")
end

LINES = <<~TEXT.lines
  fee cash monthly 250
  sale shop tea 3 1250
  refund shop tea 1250 cold
  transfer bank cash bank rent 90000
  interest bank 0.5 17
TEXT

ledger = Ledger.new
rounds = Integer(ARGV.fetch(0, "2000"))
# Each kind comes in the ledger later than the one before, as when a business grows.
LINES.size.times do |kinds|
  entries = LINES.first(kinds + 1).map { |line| Entry.new(line) }
  rounds.times { entries.each { |entry| ledger.add(entry) } }
end
puts ledger
