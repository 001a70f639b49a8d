# The settings are methods.

class Config
  def initialize(values)
    @values = values
    values.each_key { |key| define_singleton_method(key) { @values[key] } }
  end
end

config = Config.new({ limit: 3, width: 80, height: 25 })
sum = 0
(1_500_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += config.limit + config.width - config.height }
puts sum
