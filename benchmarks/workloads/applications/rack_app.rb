# What does a Rack application cost? Middleware, parameters, cookies and uploads, by mock requests.
require_relative "../../packages"
VMTraceBench.with_packages("rack") { require "rack" }

APP = Rack::Builder.new do
  use Rack::Head
  use Rack::ConditionalGet
  use Rack::ETag
  use Rack::MethodOverride
  map("/echo") do
    run lambda { |env|
      request = Rack::Request.new(env)
      [200, { "Content-Type" => "text/plain" }, [request.params.sort.inspect, request.request_method]]
    }
  end
  map("/visits") do
    run lambda { |env|
      response = Rack::Response.new
      response.set_cookie("visits", Rack::Request.new(env).cookies.fetch("visits", 0).to_i + 1)
      response.write("welcome")
      response.finish
    }
  end
  run ->(env) { [404, {}, ["no #{Rack::Utils.escape_html(env["PATH_INFO"])}"]] }
end.to_app

def requests(mock, i)
  query = "/echo?list[]=#{i}&list[]=2&deep[key]=%20x&text=#{'y' * (i % 5)}"
  first = mock.get(query)
  [first, mock.get(query, "HTTP_IF_NONE_MATCH" => first["ETag"]),
   mock.post("/echo", params: { "_method" => "PUT", "n" => i.to_s, "list" => %w[1 2] }),
   mock.get("/visits", "HTTP_COOKIE" => "visits=#{i}; other=1"),
   mock.get("/nowhere%3Cb/#{i}"), mock.head("/echo")].map(&:status)
end

mock = Rack::MockRequest.new(APP)
VMTraceBench.iterate do
  60.times { |i| requests(mock, i) == [200, 304, 200, 200, 404, 200] or raise }
end
