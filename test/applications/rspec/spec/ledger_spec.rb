# A suite of examples that pass, fail and are pending.
class Ledger
  Entry = Struct.new(:name, :cents)
  attr_reader :entries

  def initialize = @entries = []
  def add(name, cents) = entries << Entry.new(name, Integer(cents))
  def sum = entries.sum(&:cents)
end

RSpec.describe Ledger do
  subject(:ledger) { described_class.new }

  200.times do |n|
    it "adds #{n} entries" do
      n.times { |i| ledger.add("entry #{i}", i) }
      expect(ledger.sum).to eq(n * (n - 1) / 2)
      expect(ledger.entries.size).to be == n
    end
  end
  it("wants numbers") { expect { ledger.add("x", "y") }.to raise_error(ArgumentError, /invalid value/) }
  it("is doubled") do
    entry = instance_double(Ledger::Entry, cents: 7)
    ledger.entries << entry
    expect(ledger.sum).to eq(7)
  end
  it("fails") { expect(ledger.sum).to eq(1) }
  it("is not ready")
end
