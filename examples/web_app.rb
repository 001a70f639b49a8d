# A small web application under load: Sinatra on WEBrick, on the loopback address; another process sends REQUESTS requests.
# -I gives the libraries of the distribution (packages ruby-sinatra, ruby-webrick); doc/guide/web-app.md has the command.
#   web_app.rb [REQUESTS]

if ARGV.first == "ask"
  require "digest"
  require "socket"
  port, requests = ARGV.drop(1).map(&:to_i)
  paths = ["/", "/entries", "/entries/7", "/search?word=line&limit=3", "/entries.json", "/nowhere"]
  statuses = Hash.new(0)
  digest = Digest::SHA256.new
  requests.times do |i|
    socket = TCPSocket.new("127.0.0.1", port)
    path = paths[i % paths.size]
    if i % 10 == 9
      body = "title=Entry+#{i}&text=line+#{i}%0Aline+two"
      socket.write("POST /entries HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: #{body.size}\r\n\r\n#{body}")
    else
      socket.write("GET #{path} HTTP/1.0\r\nHost: localhost\r\n\r\n")
    end
    head, body = socket.read.split("\r\n\r\n", 2)
    statuses[head[/\d{3}/]] += 1
    digest << body
    socket.close
  end
  puts statuses.sort.map { |pair| pair.join(": ") }.join(", "), digest.hexdigest
  exit
end

require "sinatra/base"
require "rack/handler/webrick"
require "json"
require "erb"

class Notes < Sinatra::Base
  Entry = Struct.new(:id, :title, :text) do
    def summary = text.lines.first.to_s.strip[0, 40]
  end

  set :environment, :production
  set :entries, (1..20).map { |i| Entry.new(i, "Entry #{i}", (1..i).map { |n| "line #{n} of #{i} <b>" }.join("\n")) }
  template(:list) { "<ul><% @entries.each do |e| %><li><a href=\"/entries/<%= e.id %>\"><%= h e.title %></a>: <%= h e.summary %></li><% end %></ul>" }
  template(:entry) { "<h1><%= h @entry.title %></h1><% @entry.text.each_line do |line| %><p><%= h line.chomp %></p><% end %>" }
  helpers do
    def entries = settings.entries
    def h(text) = Rack::Utils.escape_html(text)
  end

  get("/") { "<p>#{entries.size} notes, #{entries.sum { |entry| entry.text.size }} characters</p>" }
  get("/entries") { @entries = entries; erb :list }
  get("/entries/:id") { @entry = entries.find { |entry| entry.id == params[:id].to_i } or halt 404; erb :entry }
  get("/entries.json") { content_type :json; JSON.generate(entries.map(&:to_h)) }
  get("/search") { JSON.generate(entries.select { |entry| entry.text.include?(params[:word]) }.first(params[:limit].to_i).map(&:title)) }
  post("/entries") { entries[entries.size % 20] = Entry.new(entries.size, params[:title], params[:text]); redirect "/entries" }
end

Rack::Handler::WEBrick.run(Notes, Host: "127.0.0.1", Port: 0, AccessLog: [], Logger: WEBrick::Log.new(nil, WEBrick::BasicLog::FATAL)) do |server|
  port = server.listeners.first.addr[1]
  Thread.new do
    puts IO.popen([RbConfig.ruby, "--disable=gems", __FILE__, "ask", port.to_s, ARGV.fetch(0, "600")], &:read)
  ensure
    server.shutdown
  end
end
