# rails.rb FOLDER FIRST WARM: the Rails application in that folder, as it is started and asked. Processor time of the
# whole process, the tracer's thread and the kernel's part included, of the start, of the FIRST requests and of WARM
# further ones.
require_relative "../inside"

folder = ARGV.shift
first, warm = ARGV.map { |number| Integer(number) }
Dir.chdir(folder)
require "#{folder}/config/environment"

REQUESTS = [["GET", "/notes"], ["GET", "/notes.json"], ["GET", "/notes?title=1"], ["GET", "/notes/0"], ["GET", "/nowhere"],
            *(1..12).map { |i| ["GET", "/notes/#{i}"] },
            ["POST", "/notes", { "title" => "", "body" => "text" }], ["GET", "/broken"]].freeze

application = Rack::MockRequest.new(Rails.application)
cpu = -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) }
ask = lambda do |count|
  from = cpu.call
  count.times do |i|
    method, path, form = REQUESTS[i % REQUESTS.size]
    application.request(method, path, "HTTP_HOST" => "application.test", params: form)
  end
  cpu.call - from
end

boot = cpu.call
ActiveRecord::Base.transaction do
  12.times do |i|
    Note.new(title: "Note #{i}", body: "some & more words " * (i % 9)).tap { |note| note.tags.build(name: "a") }.save!
  end
end
{ "boot" => boot, "first_requests" => ask.call(first), "warm_requests" => ask.call(warm) }.each do |name, seconds|
  VMTraceBench::REPORT ? VMTraceBench.report(name, seconds) : puts("#{name} #{seconds}")
end
