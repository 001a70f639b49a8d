# net/http: each request opens a connection of its own to a server that takes 3 ms to accept one.
# Place: Client#get, Net::HTTP#connect, Net::HTTP.get, TCPSocket.open, TCPSocket#initialize, IO#wait_readable
# Subject: blocked
# JIT: any
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
  def initialize(port) = @port = port

  def get(path) = Net::HTTP.start("127.0.0.1", @port) { |http| http.get(path).body }
end

client = Client.new(port)
size = 0
(300 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { |i| size += client.get("/#{i}").size }
puts size
Process.kill(:KILL, child)
Process.wait(child)
