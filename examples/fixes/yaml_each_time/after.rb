# It is read once.
require "yaml"

class Settings
  TEXT = <<~YAML
    limits:
      small: 10
      large: 200
    names: [alpha, beta, gamma]
    colors: {red: 1, green: 2}
  YAML

  def limit(name) = (@values ||= YAML.load(TEXT))["limits"][name]
end

settings = Settings.new
sum = 0
(20_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| sum += settings.limit(i.even? ? "small" : "large") }
puts sum
