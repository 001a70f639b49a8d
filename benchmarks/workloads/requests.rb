# What does a web application cost? Without sockets: routes, parameters, sessions, templates, JSON.
# Each request goes through the layers that a framework has.
require_relative "../inside"
require "erb"
require "json"
require "uri"

class Store
  Entry = Struct.new(:id, :title, :text, :tags)

  def initialize
    @entries = (1..60).map do |i|
      Entry.new(i, "Entry #{i}", "line <#{i}> & more\n" * (i % 7 + 1), %w[red green blue].first(i % 4))
    end
  end

  def all = @entries
  def find(id) = @entries.find { |entry| entry.id == id }
  def search(word) = @entries.select { |entry| entry.text.include?(word) || entry.title.include?(word) }

  def add(title, text)
    @entries.shift
    @entries << Entry.new(@entries.last.id + 1, title, text, [])
  end
end

class Request
  attr_reader :method, :path, :params, :headers, :cookies

  def initialize(method, target, headers, body)
    @method, @headers = method, headers
    @path, query = target.split("?", 2)
    @params = {}
    [query, body].compact.each { |text| @params.update(URI.decode_www_form(text).to_h) }
    @cookies = headers.fetch("Cookie", "").split(/;\s*/).to_h { |pair| pair.split("=", 2) }
  end
end

class Application
  LIST = '<ul><% entries.each do |e| %><li><a href="/entries/<%= e.id %>"><%= h(e.title) %></a> ' \
         '<%= h(summary(e)) %></li><% end %></ul>'
  PAGE = '<h1><%= h(entry.title) %></h1><% entry.text.each_line do |line| %><p><%= h(line.chomp) %></p><% end %>' \
         '<%= entry.tags.join(", ") %>'
  # Compiled to methods once, as frameworks do.
  ERB.new(LIST).def_method(self, "list(entries)")
  ERB.new(PAGE).def_method(self, "page(entry)")

  def initialize
    @store = Store.new
    @sessions = Hash.new { |hash, id| hash[id] = { visits: 0 } }
    @routes = []
    route("GET", %r{\A/\z}) { |_, session| "#{@store.all.size} entries, visit #{session[:visits]}" }
    route("GET", %r{\A/entries\z}) { |_, _| list(@store.all) }
    route("GET", %r{\A/entries/(?<id>\d+)\z}) { |request, _| show(@store.find(request.params["id"].to_i)) }
    route("GET", %r{\A/entries\.json\z}) { |_, _| JSON.generate(@store.all.map(&:to_h)) }
    route("GET", %r{\A/search\z}) { |request, _| list(@store.search(request.params.fetch("word"))) }
    route("POST", %r{\A/entries\z}) do |request, _|
      @store.add(request.params["title"], request.params["text"])
      "added"
    end
  end

  def route(method, pattern, &block) = @routes << [method, pattern, block]
  def h(text) = ERB::Util.html_escape(text)
  def summary(entry) = entry.text.lines.first.to_s.strip[0, 40]

  def show(entry)
    throw :halt, [404, "not found"] unless entry
    page(entry)
  end

  def call(request)
    session = @sessions[request.cookies["session"]]
    session[:visits] += 1
    status, body = catch(:halt) { [200, dispatch(request, session)] }
    [status, { "Content-Length" => body.bytesize.to_s, "Content-Type" => "text/html" }, body]
  rescue KeyError => error
    [400, {}, error.message]
  end

  def dispatch(request, session)
    @routes.each do |method, pattern, block|
      next unless method == request.method
      match = pattern.match(request.path) or next
      request.params.update(match.named_captures)
      return block.call(request, session)
    end
    throw :halt, [404, "no route"]
  end
end

TARGETS = %w[
  / /entries /entries/7 /search?word=more /entries.json /entries/999 /nowhere /search
].freeze

def serve(application, requests)
  bytes = 0
  requests.times do |i|
    headers = { "Host" => "localhost", "Cookie" => "theme=dark; session=#{i % 50}" }
    request = i % 10 == 9 ? Request.new("POST", "/entries", headers, "title=Entry+#{i}&text=line+#{i}%0Aline+two")
                          : Request.new("GET", TARGETS[i % TARGETS.size], headers, nil)
    bytes += application.call(request).last.bytesize
  end
  bytes
end

application = Application.new
VMTraceBench.iterate(warmup: 6, runs: 8) { serve(application, 4_000) }
