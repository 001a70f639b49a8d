# A site on this machine for a browser: its address is another origin for what is served elsewhere.
require "socket"

module Site
  # Serves what the answer to a path is, [body, type of its content], until the block returns. Yields the address.
  def self.serve(answer)
    server = TCPServer.new("127.0.0.1", 0)
    thread = Thread.new do
      loop do
        Thread.new(server.accept) do |client|
          path = client.gets.to_s[/\AGET ([^ ?]*)/, 1].to_s
          nil until client.gets.to_s.strip.empty?
          body, type = answer.(path)
          client.write "HTTP/1.0 200 OK\r\nContent-Type: #{type}\r\nContent-Length: #{body.bytesize}\r\n\r\n", body
        ensure
          client.close
        end
      end
    end
    yield "http://127.0.0.1:#{server.addr[1]}"
  ensure
    thread&.kill
    server&.close
  end
end
