# vm-trace open: a trace in a page of Perfetto's kind. The page here is one of our own, of another origin, in a real
# browser: it fetches what its address names, as Perfetto's does.
require "zlib"
require_relative "page_helper"
require_relative "site"
require_relative "fxt_builder"

class TestOpen < Minitest::Test
  include PageHelper

  UI = <<~HTML
    <!doctype html><meta charset=utf-8><title>page</title><script>
    onload = async () => {
      const url = new URLSearchParams(location.hash.split("?")[1]).get("url");
      try {
        const bytes = new Uint8Array(await (await fetch(url)).arrayBuffer());
        document.title = bytes.length + " " + bytes.reduce((sum, byte) => (sum * 31 + byte) % 1000003, 7);
      } catch (e) { document.title = "failed: " + e; }
    };
    </script>
  HTML

  def trace = CallsTrace.new { |t| 3000.times { |i| t.call(:main, "A#a (/a.rb:1)", i, i + 0.5) } }.build.bytes
  def sum_of(bytes) = bytes.each_byte.reduce(7) { |sum, byte| (sum * 31 + byte) % 1_000_003 }
  def free_port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }

  # Yields the address of UI.
  def with_ui(&) = Site.serve(->(_path) { [UI, "text/html"] }, &)

  # Yields the address that the tool prints, and returns its status.
  def opened(path, *options, env: {})
    err, write = IO.pipe
    pid = spawn(env, TOOL, "open", *options, path, err: write, in: File::NULL)
    write.close
    yield err.gets[/http\S+/]
    Process.wait2(pid).last.exitstatus
  ensure
    err&.close
  end

  def get(port, path, method: Net::HTTP::Get)
    Net::HTTP.start("127.0.0.1", port) { |http| http.request(method.new(path)) }
  end

  def test_a_page_in_a_browser_gets_the_trace
    skip_without_browser
    bytes = trace
    { "a b.fxt" => bytes, "a.fxt.gz" => Zlib.gzip(bytes) }.each do |name, content|
      with_file(content, name) do |path|
        with_ui do |ui|
          status = opened(path, "--ui=#{ui}", "--port=#{free_port}", "--no-browser") do |url|
            browser = Browser.shared
            browser.visit(url)
            wait_for(browser, "document.title !== 'page'")
            assert_equal "#{bytes.bytesize} #{sum_of(bytes)}", browser.run("return document.title")
          end
          assert_equal 0, status
        end
      end
    end
  end

  def test_only_its_page_may_read_it
    skip_without_browser
    with_file(trace, "a.fxt") do |path|
      with_ui do |ui|
        opened(path, "--ui=https://ui.example", "--port=#{port = free_port}", "--no-browser") do |url|
          assert_equal "https://ui.example/#!/?url=http://127.0.0.1:#{port}/a.fxt", url
          browser = Browser.shared
          browser.visit("#{ui}/#!/?url=http://127.0.0.1:#{port}/a.fxt")
          wait_for(browser, "document.title !== 'page'")
          assert_match(/\Afailed: /, browser.run("return document.title"))
        end
      end
    end
  end

  def test_what_it_answers
    with_file(trace, "a.fxt") do |path|
      status = opened(path, "--port=#{port = free_port}", "--no-browser") do |url|
        assert_equal "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:#{port}/a.fxt", url
        assert_equal %w[404 404 404], ["/", "/../a.fxt", "/a.fxt.gz"].map { |other| get(port, other).code }
        preflight = get(port, "/a.fxt", method: Net::HTTP::Options)
        assert_equal %w[204 true], [preflight.code, preflight["Access-Control-Allow-Private-Network"]]
        TCPSocket.open("127.0.0.1", port) { |socket| socket.write("GET /a.fxt HT") } # ends early
        reply = get(port, "/a.fxt?a=1")
        assert_equal ["200", "https://ui.perfetto.dev", trace], [reply.code, reply["Access-Control-Allow-Origin"], reply.body]
      end
      assert_equal 0, status, "it ends when the page has the trace"
    end
  end

  def test_a_folder_with_one_trace
    Dir.mktmpdir do |dir|
      File.binwrite("#{dir}/7.fxt", trace)
      File.write("#{dir}/index.csv", "")
      opened(dir, "--port=#{port = free_port}", "--no-browser") do |url|
        assert_equal trace, get(port, URI(url).fragment[%r{/\w+\.fxt\z}]).body
      end
    end
  end

  def test_the_browser_that_the_user_names
    Dir.mktmpdir do |dir|
      File.write("#{dir}/browser", "#!/bin/sh\necho \"$1\" > #{dir}/asked.new; mv #{dir}/asked.new #{dir}/asked\n", perm: 0o755)
      with_file(trace, "a.fxt") do |path|
        opened(path, "--port=#{port = free_port}", env: { "BROWSER" => "#{dir}/browser" }) do |url|
          sleep 0.01 until File.exist?("#{dir}/asked")
          assert_equal "#{url}\n", File.read("#{dir}/asked")
          get(port, "/a.fxt")
        end
      end
    end
  end

  def test_what_it_cannot_do_is_said
    with_file(trace, "a.fxt") do |path|
      taken = TCPServer.new("127.0.0.1", 0)
      { [path, path] => [2, /vm-trace merge/], ["-"] => [2, /not standard input/], ["#{path}.none"] => [3, /No such file/],
        [File::NULL] => [3, /No data/], ["--ui=perfetto", path] => [2, /address of a page/],
        ["--port=#{taken.addr[1]}", path] => [3, /port #{taken.addr[1]} of 127.0.0.1: Address already in use; another/] }
        .each do |arguments, (status, message)|
        result = tool("open", "--no-browser", *arguments)
        assert_equal status, result.status, arguments.inspect
        assert_match message, result.err
      end
    ensure
      taken&.close
    end
  end
end
