# `DelegateClass` makes a method for each one of the class.
require "delegate"

class Account
  attr_reader :cents

  def initialize(cents) = @cents = cents
end

class View < DelegateClass(Account)
  def label = "#{cents / 100}.#{cents % 100}"
end

views = Array.new(20) { |i| View.new(Account.new(i * 1234)) }
size = 0
(60_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { views.each { |view| size += view.label.size } }
puts size
