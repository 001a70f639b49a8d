# A configuration answers its settings by `method_missing`: each call searches all classes first, and
# makes a string and an array.
# Place: Config#method_missing, String#delete_suffix
# Subject: method
# JIT: any

class Config
  def initialize(values) = @values = values

  def method_missing(name, *arguments)
    key = name.to_s.delete_suffix("?").to_sym
    @values.key?(key) ? @values[key] : super
  end

  def respond_to_missing?(name, all = false) = @values.key?(name) || super
end

config = Config.new({ limit: 3, width: 80, height: 25 })
sum = 0
(1_500_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += config.limit + config.width - config.height }
puts sum
