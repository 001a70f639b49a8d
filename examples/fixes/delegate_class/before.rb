# delegate: a SimpleDelegator answers calls by `method_missing`.
# Place: Delegator#method_missing, Delegator#target_respond_to?
# Subject: method
# JIT: any
require "delegate"

class Account
  attr_reader :cents

  def initialize(cents) = @cents = cents
end

class View < SimpleDelegator
  def label = "#{cents / 100}.#{cents % 100}"
end

views = Array.new(20) { |i| View.new(Account.new(i * 1234)) }
size = 0
(60_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { views.each { |view| size += view.label.size } }
puts size
