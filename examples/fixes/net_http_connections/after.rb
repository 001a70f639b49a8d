# One connection for all requests.
require "net/http"
require "socket"

server = TCPServer.new("127.0.0.1", 0)
port = server.local_address.ip_port
child = fork do
  loop do
    socket = server.accept
    sleep 0.003
    Thread.new do
      while socket.gets
        nil until socket.gets == "\r\n"
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
      end
    end
  end
end
server.close

class Client
  def initialize(port) = @http = Net::HTTP.start("127.0.0.1", port)

  def get(path) = @http.get(path).body
end

client = Client.new(port)
size = 0
(300 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| size += client.get("/#{i}").size }
puts size
Process.kill(:KILL, child)
Process.wait(child)
