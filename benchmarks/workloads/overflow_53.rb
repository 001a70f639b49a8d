# What does an exit at every call cost, 53 frames deep?
ARGV.replace(%w[53 100000])
load File.expand_path("../rows/exits.rb", __dir__)
