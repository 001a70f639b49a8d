# Sends requests to the application `notes` and prints how many a second it answers. -I chooses the
# version of the application, and says where Rack is.
#   requests.rb [REQUESTS]
require "notes"
require "rack/mock"

requests = Integer(ARGV.fetch(0, "20000"))
client = Rack::MockRequest.new(Notes.new)
now = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
2_000.times { |i| client.get("/notes/#{i}") } # until it is compiled
bytes = 0
begun = now.()
requests.times { |i| bytes += client.get("/notes/#{i}").body.bytesize }
warn "#{(requests / (now.() - begun)).round} requests a second"
puts "#{requests} answers, #{bytes} bytes"
