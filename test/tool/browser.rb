# A headless Chromium, driven by the chromedriver that comes with it, over WebDriver's JSON
# (https://www.w3.org/TR/webdriver2/). The tests of the page need only a few commands, so no
# library.
require "json"
require "net/http"
require "socket"
require "tmpdir"

class Browser
  ARGUMENTS = %w[--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
                 --disable-component-update --disable-sync --hide-scrollbars].freeze

  def self.missing
    folders = ENV["PATH"].split(":")
    %w[chromium chromedriver].reject { |name| folders.any? { |dir| File.executable?(File.join(dir, name)) } }
  end

  def initialize(width: 1300, height: 1000, dark: false)
    @dir = Dir.mktmpdir
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    @driver = spawn("chromedriver", "--port=#{port}", out: File.join(@dir, "log"), err: %i[child out], pgroup: true)
    @http = Net::HTTP.new("127.0.0.1", port)
    @http.read_timeout = 60
    options = { "args" => [*ARGUMENTS, "--user-data-dir=#{@dir}/profile", "--window-size=#{width},#{height}",
                           *(dark ? ["--blink-settings=preferredColorScheme=0"] : [])] }
    capabilities = { "alwaysMatch" => { "goog:chromeOptions" => options } }
    wait_for_driver
    @session = "/session/#{call("/session", "capabilities" => capabilities)["sessionId"]}"
  end

  def open(path) = visit("file://#{path}")
  def visit(url) = call("#{@session}/url", "url" => url)

  # Runs a function's body and returns its result.
  def run(script, *arguments) = call("#{@session}/execute/sync", "script" => script, "args" => arguments)

  def text(selector) = run("return document.querySelector(arguments[0]).innerText", selector)
  def texts(selector) = map(selector, "e.innerText")
  def click(selector) = call("#{@session}/element/#{element(selector)}/click", {})
  def type(selector, text) = call("#{@session}/element/#{element(selector)}/value", "text" => text)

  # The values of a JavaScript expression for each element, e, that the selector matches.
  def map(selector, expression)
    run("return [...document.querySelectorAll(arguments[0])].map((e) => #{expression})", selector)
  end

  # Presses keys, one after the other, where the focus is; `held` stays down meanwhile.
  def press(*keys, held: nil)
    strokes = keys.flat_map { |key| [{ "type" => "keyDown", "value" => key }, { "type" => "keyUp", "value" => key }] }
    strokes = [{ "type" => "keyDown", "value" => held }, *strokes, { "type" => "keyUp", "value" => held }] if held
    call("#{@session}/actions", "actions" => [{ "type" => "key", "id" => "keyboard", "actions" => strokes }])
  end

  # Drags the pointer over an element; from and to are fractions of its width.
  def drag(selector, from, to)
    box = run(<<~JS, selector)
      const e = document.querySelector(arguments[0]);
      let b = e.getBoundingClientRect();
      if (b.top < 0 || b.bottom > innerHeight) {
        e.scrollIntoView({ block: 'center' });
        b = e.getBoundingClientRect();
      }
      return [b.left, b.top, b.width, b.height];
    JS
    y = (box[1] + box[3] / 2).to_i
    move = ->(part) { { "type" => "pointerMove", "duration" => 50, "x" => (box[0] + box[2] * part).to_i, "y" => y } }
    actions = [move[from], { "type" => "pointerDown", "button" => 0 }, move[(from + to) / 2], move[to],
               { "type" => "pointerUp", "button" => 0 }]
    call("#{@session}/actions", "actions" => [{ "type" => "pointer", "id" => "mouse", "actions" => actions }])
  end

  # Messages of the browser's console, such as errors of the page's script.
  def problems = call("#{@session}/se/log", "type" => "browser").map { |entry| entry["message"] }

  def screenshot(path)
    reply = JSON.parse(@http.get("#{@session}/screenshot").body)
    File.binwrite(path, reply["value"].unpack1("m"))
  end

  def close
    @http.delete(@session) if @session
  ensure
    Process.kill(:TERM, -@driver)
    Process.wait(@driver)
    FileUtils.rm_rf(@dir)
  end

  private

  def element(selector)
    call("#{@session}/element", "using" => "css selector", "value" => selector).values.first
  end

  def call(path, body)
    reply = JSON.parse(@http.post(path, JSON.generate(body), "Content-Type" => "application/json").body)["value"]
    raise "#{path}: #{reply["message"]}" if reply.is_a?(Hash) && reply["error"]
    reply
  end

  def wait_for_driver
    200.times do
      return if JSON.parse(@http.get("/status").body).dig("value", "ready")
    rescue SystemCallError, JSON::ParserError
      sleep 0.05
    end
    raise "chromedriver does not answer: #{File.read(File.join(@dir, "log"))}"
  end
end
