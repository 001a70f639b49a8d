# What does a Sinatra application cost? Routes with patterns, filters, helpers, by mock requests.
require_relative "../../packages"
VMTraceBench.with_packages("sinatra", "rack", "rack-protection", "mustermann", "tilt", "ruby2_keywords") do
  require "sinatra/base"
end

class Shop < Sinatra::Base
  set :environment, :production
  set :host_authorization, {}
  disable :logging, :static
  GOODS = (1..50).to_h { |i| [i, "thing #{i}"] }.freeze

  helpers { def link(id) = %(<a href="/goods/#{id}">#{h(GOODS[id])}</a>) }
  helpers { def h(text) = Rack::Utils.escape_html(text) }
  before { @user = request.cookies["user"] || "nobody" }
  after { headers "X-User" => @user }

  get("/goods") { "#{GOODS.keys.first(params.fetch("limit", 10).to_i).map { |id| link(id) }.join} for #{h(@user)}" }
  get("/goods/:id") { |id| GOODS[id.to_i] || halt(404, "none") }
  post("/goods/:id/:action") { "#{params["action"]} #{params["id"]} #{params["count"]}" }
  get(%r{/files/(\w+)\.(txt|csv)}) { |name, type| "#{name} as #{type}" }
  get("/old/*") { redirect "/goods/#{params["splat"].first}" }
end

def requests(mock, i)
  [mock.get("/goods?limit=20", "HTTP_COOKIE" => "user=u#{i}"), mock.get("/goods/#{i % 60 + 1}"),
   mock.post("/goods/#{i}/buy", params: { "count" => "3" }), mock.get("/files/list#{i}.csv"),
   mock.get("/old/#{i}"), mock.get("/nowhere")].map(&:status)
end

mock = Rack::MockRequest.new(Shop)
VMTraceBench.iterate do
  20.times { |i| requests(mock, i) == [200, 200, 200, 200, 302, 404] or raise }
end
