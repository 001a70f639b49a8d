# psych: a configuration is read from its YAML text for each request.
# Place: Settings#limit, Psych.load, Psych::Parser#_native_parse, Psych::Parser#parse, Psych.parse_stream, YAML.load
# Subject: method
# JIT: any
require "yaml"

class Settings
  TEXT = <<~YAML
    limits:
      small: 10
      large: 200
    names: [alpha, beta, gamma]
    colors: {red: 1, green: 2}
  YAML

  def limit(name) = YAML.load(TEXT)["limits"][name]
end

settings = Settings.new
sum = 0
(20_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| sum += settings.limit(i.even? ? "small" : "large") }
puts sum
