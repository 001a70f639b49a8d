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

  # Counts what a page has asked for and not got yet: calls of setTimeout and requestAnimationFrame.
  # page_settled() resolves when there are none.
  COUNT_PENDING = <<~JS.freeze
    (() => {
      const pending = new Set(), { setTimeout, clearTimeout, requestAnimationFrame, cancelAnimationFrame } = window;
      const counted = (kind, ask) => (task, ...rest) => {
        const id = ask((...given) => { pending.delete(kind + id); task(...given); }, ...rest);
        pending.add(kind + id);
        return id;
      };
      const given_up = (kind, cancel) => (id) => { pending.delete(kind + id); cancel(id); };
      window.setTimeout = counted("timer ", setTimeout);
      window.clearTimeout = given_up("timer ", clearTimeout);
      window.requestAnimationFrame = counted("frame ", requestAnimationFrame);
      window.cancelAnimationFrame = given_up("frame ", cancelAnimationFrame);
      window.page_settled = () => new Promise((done) => {
        const look = () => (pending.size > 0 ? setTimeout(look, 5) : done());
        requestAnimationFrame(() => setTimeout(look));
      });
    })();
  JS

  class << self
    def missing
      folders = ENV["PATH"].split(":")
      %w[chromium chromedriver].reject { |name| folders.any? { |dir| File.executable?(File.join(dir, name)) } }
    end

    # The browser that the tests of a process share, with an empty tab: starting one takes seconds, a tab
    # half of one. A browser that has died or does not answer is replaced. close_shared ends the last one.
    def shared(**look)
      @shared&.renew(**look)
      @shared ||= new(**look)
    rescue StandardError => e
      raise unless @shared
      warn "another browser is started: #{e.message.lines.first}"
      close_shared
      retry
    end

    def close_shared
      @shared&.close
      @shared = nil
    end
  end

  def initialize(width: 1300, height: 1000, dark: false)
    @dir = Dir.mktmpdir
    @origins = []
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    @driver = spawn("chromedriver", "--port=#{port}", out: File.join(@dir, "log"), err: %i[child out], pgroup: true)
    @http = Net::HTTP.new("127.0.0.1", port)
    @http.read_timeout = 60
    options = { "args" => [*ARGUMENTS, "--user-data-dir=#{@dir}/profile", "--window-size=#{width},#{height}"] }
    capabilities = { "alwaysMatch" => { "goog:chromeOptions" => options } }
    wait_for_driver
    @session = "/session/#{call("/session", "capabilities" => capabilities)["sessionId"]}"
    prepare_tab(dark)
  rescue StandardError
    close if @driver
    raise
  end

  # As after a start: a new tab in a window of this size, and nothing of the pages before, neither what
  # they stored nor what they wrote to the console.
  def renew(width: 1300, height: 1000, dark: false)
    old = get("#{@session}/window/handles")
    tab = call("#{@session}/window/new", "type" => "tab")["handle"]
    old.each do |handle|
      call("#{@session}/window", "handle" => handle)
      delete("#{@session}/window")
    end
    call("#{@session}/window", "handle" => tab)
    delete("#{@session}/actions")
    forget_pages
    size = call("#{@session}/window/rect", "width" => width, "height" => height).values_at("width", "height")
    raise "its window has #{size.join(" x ")} pixels" if size != [width, height]
    cdp("Page.bringToFront")
    prepare_tab(dark)
  end

  def open(path, hash = nil) = visit(["file://#{path}", hash].compact.join("#"))

  def visit(url)
    @origins |= [url[%r{\A\w+://[^/]*}]].compact
    call("#{@session}/url", "url" => url)
  end

  # Waits until the page has done all that it has put off.
  def settle = run("return page_settled()")

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
    File.binwrite(path, get("#{@session}/screenshot").unpack1("m"))
  end

  # The processes end also if the browser or its driver hangs or is dead already.
  def close
    @http.read_timeout = 10
    delete(@session) if @session
  rescue StandardError
    nil
  ensure
    signal_all(:KILL)
    Process.wait(@driver)
    FileUtils.rm_rf(@dir)
  end

  private

  # The driver is the leader of a process group, which the browser belongs to.
  def signal_all(signal)
    Process.kill(signal, -@driver)
  rescue Errno::ESRCH
    nil
  end

  # Until the tab is closed, for each page that it shows.
  def prepare_tab(dark)
    scheme = { "name" => "prefers-color-scheme", "value" => dark ? "dark" : "light" }
    cdp("Emulation.setEmulatedMedia", "features" => [scheme])
    cdp("Page.addScriptToEvaluateOnNewDocument", "source" => COUNT_PENDING)
  end

  def forget_pages
    @origins.each { |origin| cdp("Storage.clearDataForOrigin", "origin" => origin, "storageTypes" => "all") }
    @origins.clear
    problems
  end

  # A command of the Chrome DevTools Protocol.
  def cdp(command, **parameters) = call("#{@session}/goog/cdp/execute", "cmd" => command, "params" => parameters)

  def element(selector)
    call("#{@session}/element", "using" => "css selector", "value" => selector).values.first
  end

  def call(path, body) = value_of(path, @http.post(path, JSON.generate(body), "Content-Type" => "application/json"))
  def get(path) = value_of(path, @http.get(path))
  def delete(path) = value_of(path, @http.delete(path))

  def value_of(path, reply)
    value = JSON.parse(reply.body)["value"]
    raise "#{path}: #{value["message"]}" if value.is_a?(Hash) && value["error"]
    value
  end

  def wait_for_driver
    200.times do
      return @http.start if get("/status")["ready"]
    rescue SystemCallError, JSON::ParserError
      sleep 0.05
    end
    raise "chromedriver does not answer: #{File.read(File.join(@dir, "log"))}"
  end
end
