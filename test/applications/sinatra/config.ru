require "json"
require "sinatra/base"

# A list of notes in memory. Each process has its own.
class Notes < Sinatra::Base
  set :host_authorization, permitted_hosts: []
  set :notes, {}
  set :lock, Mutex.new
  set :show_exceptions, false
  set :raise_errors, false
  enable :inline_templates

  get("/") { erb :index }
  get "/notes/:id" do
    note = settings.notes[params[:id].to_i] or halt 404, "no such note"
    content_type :json
    JSON.generate(note)
  end
  post "/notes" do
    settings.lock.synchronize { settings.notes[settings.notes.size] = { title: params[:title], body: params[:body].to_s.scan(/\w+/) } }
    redirect to("/notes/#{settings.notes.size - 1}")
  end
  get("/broken") { raise ArgumentError, "broken on purpose" }
  get("/wait") { sleep(0.01) && "waited" }
  error(ArgumentError) { env["sinatra.error"].message }
end
run Notes
__END__
@@index
<ul>
<% settings.notes.each do |id, note| %>
  <li><a href="/notes/<%= id %>"><%= ERB::Util.html_escape(note[:title]) %></a> <%= note[:body].size %></li>
<% end %>
</ul>
