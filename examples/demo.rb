# A program that a JIT compiles and that then leaves the compiled code in several ways. `make demo`
# traces it. Each method is first called with what it is compiled for, and later with something else.
# Where ZJIT and YJIT differ, the comment says so.

class Ledger
  LARGEST_FIXNUM = 2**62 - 1

  # Compiled for integers that fit into a machine word; the next one after the largest does not.
  def next_number(number)
    number + 1
  end

  # Compiled for strings; a symbol or a number is an exit (of ZJIT).
  def title(name)
    "account #{name}"
  end

  # Compiled for pairs; anything but an Array is an exit (of ZJIT).
  def split(pair)
    left, right = pair
    right || left
  end

  # An instruction that ZJIT does not compile.
  def number?(text)
    /\A#{"[0-9]".itself}+\z/o.match?(text)
  end

  # Compiled for a byte of the text; past its end there is none, which is an exit (of YJIT).
  def sign(text)
    text.getbyte(2)
  end

  # YJIT does not compile an assignment to a block parameter.
  def each_cent(amount, &block)
    block ||= proc {}
    amount.times(&block)
  end

  # Reads one variable of objects of different shapes: ZJIT learns and recompiles until it knows them.
  def worth(account)
    account.balance
  end

  # The second branch was never taken while calls were profiled.
  def describe(entry)
    if entry.nil?
      "nothing"
    else
      entry.to_s
    end
  end
end

# The order in which an object's variables are set is its shape.
class Account
  attr_reader :balance

  def initialize(balance, first_set)
    instance_variable_set(first_set, true) if first_set
    @balance = balance
  end
end

ledger = Ledger.new

20.times do |i|
  ledger.next_number(i)
  ledger.title("savings")
  ledger.split([i, i])
  ledger.worth(Account.new(i, nil))
  ledger.sign("12-")
  ledger.each_cent(1)
  ledger.describe(nil)
end

accounts = %i[@open @owner @currency @limit @branch].map { |name| Account.new(7, name) }
sum = 0
6_000.times do |i|
  sum += ledger.next_number(Ledger::LARGEST_FIXNUM) & 1
  sum += ledger.title(i).size
  sum += ledger.split(i)
  sum += 1 if ledger.number?("42")
  sum += ledger.worth(accounts[i % accounts.size])
  sum += 1 unless ledger.sign("12")
  sum += ledger.each_cent(1)
  sum += ledger.describe(i).size
end

puts "The ledger's sum is #{sum}."
