require "async"

# Each request runs in a fiber of its own, and starts more.
run(lambda do |env|
  parts = Array.new(3) { |i| Async { sleep(0.001 * i); "#{env["PATH_INFO"]} #{i}" } }.map(&:wait)
  raise ArgumentError, "broken on purpose" if env["PATH_INFO"] == "/broken"
  [200, { "content-type" => "text/plain" }, [parts.join("\n"), "\n", (1..200).sum { |i| i * env["PATH_INFO"].size }.to_s]]
end)
