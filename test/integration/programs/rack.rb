# Rack's middleware and mock requests, without a server.
require "rack"

app = Rack::Builder.new do
  use Rack::Head
  use Rack::ConditionalGet
  use Rack::ETag
  use Rack::MethodOverride
  map("/echo") { run ->(env) { request = Rack::Request.new(env); [200, { "Content-Type" => "text/plain" }, [request.params.sort.inspect, request.request_method]] } }
  map("/cookie") do
    run lambda { |env|
      response = Rack::Response.new
      Rack::Utils.set_cookie_header!(response.headers, "seen", Rack::Request.new(env).cookies.fetch("seen", 0).to_i + 1)
      response.write("cookie")
      response.finish
    }
  end
  run ->(env) { [404, {}, [Rack::Utils.escape_html(env["PATH_INFO"])]] }
end.to_app

mock = Rack::MockRequest.new(app)
300.times do |i|
  answers = [
    mock.get("/echo?a[]=#{i}&a[]=2&b[c]=%20x&d=#{"y" * (i % 5)}"),
    mock.post("/echo", params: { "_method" => "PUT", "n" => i.to_s, "list" => %w[1 2] }),
    mock.post("/echo", params: { "file" => Rack::Multipart::UploadedFile.new(__FILE__) }),
    mock.get("/cookie", "HTTP_COOKIE" => "seen=#{i}; other=1"),
    mock.get("/nowhere%3Cb/#{i}"),
    mock.head("/echo"),
  ]
  etag = answers[0]["ETag"]
  answers << mock.get("/echo?a[]=#{i}&a[]=2&b[c]=%20x&d=#{"y" * (i % 5)}", "HTTP_IF_NONE_MATCH" => etag)
  answers.each { |answer| puts "#{answer.status} #{answer["Set-Cookie"]} #{answer.body.gsub(/#<.*?>|RackMultipart\S*/m, "...")}" } if i % 20 == 0
end
