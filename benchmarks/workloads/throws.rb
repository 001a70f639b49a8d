# What does leaving a block by `break` cost? Each is an exit, and another where it is caught.
ARGV.replace(%w[100000])
load File.expand_path("../rows/throws.rb", __dir__)
