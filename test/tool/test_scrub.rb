# `vm-trace scrub`: what is removed is gone from the bytes; all else is as before.
require "zlib"
require_relative "tool_helper"

class TestScrub < Minitest::Test
  LONG = 300 # seconds, in which only a loop without an end does not end

  include ToolHelper

  # Runs it and returns the result and the new bytes (nil: there is no file).
  def scrub(trace, *options, name: "out.fxt")
    Dir.mktmpdir do |dir|
      File.binwrite("#{dir}/in.fxt", trace.is_a?(String) ? trace : trace.bytes)
      result = tool("scrub", "-o", "#{dir}/#{name}", *options, "#{dir}/in.fxt")
      skip "the tool was built without PCRE2" if result.err.include?("built without PCRE2")
      path = "#{dir}/#{name}"
      return result, nil unless File.exist?(path)
      return result, name.end_with?("gz") ? Zlib::GzipReader.open(path, &:read) : File.binread(path)
    end
  end

  # Records may lie elsewhere.
  def dump(bytes) = with_file(bytes) { |path| tool("dump", path).out.gsub(/"offset":\d+,/, "") }

  # Events, names, arguments, samples: whatever a trace of any kind holds.
  def test_without_anything_to_remove_a_trace_says_the_same
    files = Dir["#{TRACES}/*.fxt", "#{Conformance::OURS}/**/*.fxt"] - Dir["#{Conformance::OURS}/truncated_tail.fxt"]
    refute_empty files
    files.each do |file|
      result, bytes = scrub(File.binread(file), "--keep-paths", "--keep-command")
      assert_includes [0, 1], result.status, "#{file}: #{result.err}"
      assert_equal dump(File.binread(file)), dump(bytes), file
      report = ->(path) { tool("report", "--all", path).out.lines.drop(1).grep_v(/^  file |Contents|\/(trace|processes)\.fxt /) }
      with_file(bytes) { |path| assert_equal report[file], report[path], file }
    end
  end

  def trace
    FxtBuilder.simple do |b|
      b.process_name(42, "ruby")
      b.event(:instant, "trace", "settings", ts: 1,
              args: { "command" => "ruby /srv/shop/bin/start --token=tooSecret", "pid" => [:uint32, 42] })
      b.event(:instant, "side_exit", "GuardType(Acme::Money)", ts: 2,
              args: { "0" => "Acme::Order#pay (/srv/shop/app/order.rb:7)", "1" => "<main> (bin/start.rb:1)",
                      "n" => "I/O, and/or", "m" => [:int64, -5] })
      b.event(:instant, "app", "ran: ruby /srv/shop/bin/start --token=tooSecret!", ts: 3,
              args: { "at" => "~/x/y", "url" => "./a/b" })
    end
  end

  def test_command_paths_and_patterns_are_gone
    _, bytes = scrub(trace, "--remove", "Acme::[A-Z][a-z]*", "--remove=pay|token")
    %w[tooSecret srv shop bin/start Acme pay].each { |word| refute_includes bytes, word }
    events = dump(bytes).lines.map { |line| JSON.parse(line) }
    assert_equal ["settings", "GuardType(***)", "ran: ***!"], events.map { |event| event["name"] }
    first, second, third = events.map { |event| event["args"] }
    second["0"] = second["0"].sub("***#***", "******")
    assert_equal [{ "command" => "***", "pid" => 42 },
                  { "0" => "****** (*/order.rb:7)", "1" => "<main> (*/start.rb:1)", "n" => "*/or", "m" => -5 },
                  { "at" => "*/y", "url" => "*/b" }],
                 [first, second, third]
    assert_equal [2, 3], events.drop(1).map { |event| event["ts"] }
  end

  # What a POSIX expression reads as the letter d; a text with a NUL; a search that would take years.
  def test_patterns_of_perl
    texts = ["card 4111 1111 done", "a\0token9\0b", "x" * 60 + "!"]
    trace = FxtBuilder.simple { |b| texts.each.with_index(1) { |text, ts| b.event(:instant, "app", text, ts: ts) } }
    { ["(?<=card )[\\d ]{9}"] => ["card *** done", *texts.drop(1)], ["\\btoken\\d"] => [texts[0], "a\0***\0b", texts[2]],
      ["(x+)+$"] => [*texts.take(2), "***"] }.each do |options, expected|
      result, bytes = scrub(trace, *options.flat_map { |option| ["--remove", option] })
      assert_equal expected, dump(bytes).lines.map { |line| JSON.parse(line)["name"] }.reject { |name| name == "chunk" }
      assert_equal expected.last == "***", result.err.include?("; 1 of them are removed as a whole: "), result.err
    end
  end

  # The event's name if it is of this category, and its argument otherwise.
  def scrubbed(text, category, argument = nil, type: :instant)
    event = argument ? "x" : text
    trace = FxtBuilder.simple { |b| b.event(type, category, event, ts: 1, args: argument ? { argument => text } : {}) }
    _, bytes = scrub(trace)
    JSON.parse(dump(bytes).lines.last).then { |found| argument ? found["args"][argument] : found["name"] }
  end

  # What is in the parentheses of a label is a path, whatever it looks like.
  LABELS = {
    "Foo#run (two secrets/bin/runner:7)" => "Foo#run (*/runner:7)",
    "Foo#run (bin/rails:4)" => "Foo#run (*/rails:4)",
    "block (2 levels) in <main> (/home/two secrets/app/user.rb:12)" => "block (2 levels) in <main> (*/user.rb:12)",
    "<top (required)> (/secrets/a (1)/b.rb:1)" => "<top (required)> (*/b.rb:1)",
    "Object#m0 ((eval at /home/two secrets/a.rb:3):1)" => "Object#m0 ((eval at */a.rb:3):1)",
    "Kernel#require (<internal:/usr/secrets/core_ext/kernel_require.rb>:136)" =>
      "Kernel#require (<internal:*/kernel_require.rb>:136)",
    "Integer#times (<internal:numeric>:238)" => "Integer#times (<internal:numeric>:238)",
    "Integer#/ (secrets/a.rb:1)" => "Integer#/ (*/a.rb:1)",
    "Integer#/" => "Integer#/",
    "App#GET /secrets/list (app.rb:3)" => "App#GET */list (app.rb:3)",
    "Rake.run (Rakefile:3)" => "Rake.run (Rakefile:3)",
    "Foo#bar (<cfunc>)" => "Foo#bar (<cfunc>)",
    "Foo#bar (/home/secrets/...[7 bytes cut]" => "Foo#bar (*/...[7 bytes cut]",
  }.freeze

  def test_labels
    LABELS.each do |text, expected|
      assert_equal expected, scrubbed(text, "side_exit", "0"), text
      assert_equal expected, scrubbed(text, "compile", "iseq"), text
      assert_equal expected, scrubbed(text, "preempted"), text
      assert_equal "#{expected} x12 < Foo#a (*/b:3) < 5 more frames",
                   scrubbed("#{text} x12 < Foo#a (secret/b:3) < 5 more frames", "side_exit", "10+") if text.end_with?(")")
    end
  end

  def test_compilations_are_named_by_a_method_and_a_path
    { "times@<internal:numeric>:257" => "times@<internal:numeric>:257", "/@my app/bin/rails:3" => "/@*/rails:3",
      "block in <main>@/home/two secrets/a.rb:1" => "block in <main>@*/a.rb:1",
      "bin/rails:3" => "*/rails:3" }.each do |text, expected|
      assert_equal expected, scrubbed(text, "compile", type: :begin)
    end
  end

  # What is before the last slash may be folders, with blanks in their names.
  def test_any_other_text
    { "open #<File:/home/two secrets/key>" => "open #<File:*/key>", "/home/two secrets/app/user.rb" => "*/user.rb",
      "two secrets/bin/runner" => "*/runner", "GET /secrets/list" => "GET */list", "GET /list" => "GET /list",
      "~/two secrets/x" => "*/x", "at ../secrets/x" => "at */x", "secrets/two words/" => "*/",
      "http://user:secret@host/list?a" => "http:*/list?a", "100 %" => "100 %" }.each do |text, expected|
      assert_equal expected, scrubbed(text, "marker")
      assert_equal expected, scrubbed(text, "of another tool")
      assert_equal expected, scrubbed(text, "marker", "at")
    end
  end

  # A host may be called as a category is, and a service as an argument.
  def test_words_of_the_schema_stay
    trace = lambda do |host, service|
      OurTrace.new.tap do |t|
        args = { "host" => host, "service" => service, "unix_ns" => [:uint64, 1_795_696_725_000_000_000] }
        t.extra << { type: :instant, cat: "trace", name: "host", ts: 8500, args: args }
      end.build
    end
    (_, expected), (_, bytes) = scrub(trace["web-seven", "shop"]), scrub(trace["side_exit", "version"])
    texts = ->(copy) { dump(copy).gsub(/\*{2,3}/, "*") }
    assert_equal texts[expected], texts[bytes]
    with_file(bytes) { |path| assert_equal 0, tool("check", "--strict", path).status }
  end

  def test_a_text_with_nul_bytes_is_searched_too
    trace = FxtBuilder.simple { |b| b.event(:instant, "marker", "a\0 Acme \0b", ts: 1) }
    _, bytes = scrub(trace, "--remove", "Acme")
    refute_includes bytes, "Acme"
    assert_includes bytes, "a\0 *** \0b"
  end

  # Each process of a merged trace has its own.
  def test_command_that_begins_with_that_of_another_process_is_removed_as_a_whole
    commands = ["ruby start.rb", "ruby start.rb --token=tooSecret", "start.rb --token=tooSecret --and=more", "ruby"]
    commands.permutation do |all|
      bytes = scrub(with_commands(all, ["ran: ruby start.rb --token=tooSecret --and=more!", *commands])).last
      refute_match(/ruby|tooSecret|more/, bytes)
      assert_equal ["ran: ***!", *["***"] * 4], names(bytes)
    end
  end

  def with_commands(commands, texts)
    FxtBuilder.new.tap do |b|
      b.provider(1, "test")
      b.init
      commands.each_with_index do |command, i|
        args = { "command" => FxtBuilder::Inline.new(command) }
        b.event(:instant, "trace", "settings", ts: i, pid: 10 + i, tid: 10, args: args)
      end
      texts.each_with_index { |text, i| b.event(:instant, "app", FxtBuilder::Inline.new(text), ts: 100 + i, pid: 10, tid: 10) }
    end
  end

  def names(bytes) = dump(bytes).lines.map { |line| JSON.parse(line) }.select { |event| event["cat"] == "app" }.map { |event| event["name"] }

  # A simple implementation: marks all bytes of each command, wherever it is. One star for each gap.
  def without(text, commands)
    covered = [false] * text.size
    commands.each { |command| (0..text.size).each { |at| covered.fill(true, at, command.size) if text[at, command.size] == command } }
    text.chars.zip(covered).chunk_while { |a, b| a.last == b.last }
        .map { |part| part.first.last ? "*" : part.map(&:first).join }.join
  end

  def test_commands_are_found_as_by_a_simple_search
    random = Random.new(5)
    word = ->(most) { Array.new(random.rand(2..most)) { "ab "[random.rand(3)] }.join }
    40.times do
      commands = Array.new(random.rand(1..30)) { word[7] }
      texts = Array.new(50) { word[30] }
      _, bytes = scrub(with_commands(commands, texts), "--keep-paths")
      assert_equal texts.map { |text| without(text, commands) }, names(bytes).map { |name| name.squeeze("*") }, commands.inspect
    end
  end

  def test_what_is_kept_on_request
    _, bytes = scrub(trace, "--keep-paths")
    assert_includes bytes, "/srv/shop/app/order.rb"
    refute_includes bytes, "tooSecret"
    _, bytes = scrub(trace, "--keep-command")
    assert_includes bytes, "tooSecret"
    refute_includes bytes, "/srv/shop/app"
  end

  def test_what_is_kept_keeps_nothing_else
    trace = FxtBuilder.simple do |b|
      b.event(:instant, "trace", "settings", ts: 1, args: { "command" => "ruby --token=tooSecret" })
      b.event(:instant, "trace", "host", ts: 2, args: { "host" => "web7.shop.example" })
    end
    kept = ->(option) { %w[tooSecret web7].select { |word| scrub(trace, option).last.include?(word) } }
    assert_equal [%w[tooSecret], %w[web7]], [kept["--keep-command"], kept["--keep-host"]]
  end

  def test_host_and_service_go_and_the_time_stays
    args = { "host" => "web7.shop.example", "unix_ns" => [:uint64, 1_795_696_725_000_000_000], "service" => "cart",
             "version" => "4.2" }
    trace = FxtBuilder.simple do |b|
      b.event(:instant, "trace", "host", ts: 2, args: args)
      b.event(:instant, "app", "cart on web7.shop.example: 4.2", ts: 3)
    end
    found = ->(*options) { dump(scrub(trace, *options).last).lines.map { |line| JSON.parse(line) } }
    host, other = found[]
    assert_equal({ "host" => "***", "unix_ns" => 1_795_696_725_000_000_000, "service" => "***", "version" => "***" },
                 host["args"])
    assert_equal "*** on ***: 4.2", other["name"]
    assert_equal ["web7.shop.example", "***", "***"], found["--keep-host"][0]["args"].values_at("host", "service", "version")
    assert_equal ["***", "cart", "4.2"], found["--keep-service"][0]["args"].values_at("host", "service", "version")
  end

  def hosted(host, text)
    FxtBuilder.simple do |b|
      b.event(:instant, "trace", "host", ts: 2, args: { "host" => host, "unix_ns" => [:uint64, 1] })
      b.event(:instant, "app", text, ts: 3)
    end
  end

  # Hosts of containers have names like these.
  def test_short_name_of_a_host_is_removed_as_a_word_only
    _, bytes = scrub(hosted("vm", "vm_trace on vm: avm, vm1, (vm) vm"))
    assert_equal "vm_trace on **: avm, vm1, (**) **", JSON.parse(dump(bytes).lines.last)["name"]
  end

  # --- folders ---

  def in_folder(traces)
    Dir.mktmpdir do |dir|
      Dir.mkdir(spool = File.join(dir, "spool"))
      traces.each { |name, trace| File.binwrite(File.join(spool, name), trace.is_a?(String) ? trace : trace.bytes) }
      yield spool, File.join(dir, "out")
    end
  end

  def test_each_trace_of_a_folder_has_a_copy_once
    traces = { "web7-1-2.fxt" => hosted("web7", "a"), "db1-1-3.fxt" => hosted("db1", "b"), "notes" => "n",
               "x.fxt.saving-9" => "half", "y.fxt.zst.saving-9" => "half" }
    in_folder(traces) do |spool, out|
      assert_match(/2 traces are scrubbed, 0 were there already, 0 cannot be read$/, tool("scrub", "-o", out, spool).err)
      assert_equal %w[***-1-3.fxt.gz ***-1-2.fxt.gz].map { |name| name.tr("*", "_") }.sort, Dir.children(out).sort
      assert_match(/: 0 traces are scrubbed, 2 were there already/, tool("scrub", "-o", out, spool).err)
      File.binwrite(File.join(spool, "new-1-4.fxt"), hosted("new", "c").bytes)
      assert_match(/: 1 traces are scrubbed, 2 were there already/, tool("scrub", "-o", out, spool).err)
      Dir[File.join(out, "*")].each { |copy| refute_match(/web7|db1|new/, Zlib.gunzip(File.binread(copy))) }
    end
  end

  # The same folder again, and more is to be removed.
  def test_a_copy_that_has_something_to_remove_is_made_anew
    in_folder("a.fxt" => hosted("h7", "Parser#parse"), "b.fxt" => hosted("h7", "Lexer#lex")) do |spool, out|
      tool("scrub", "-z", "none", "-o", out, spool)
      result = tool("scrub", "-z", "none", "-o", out, "--remove", "Parser", spool)
      assert_match(/1 traces are scrubbed, 1 were there already/, result.err)
      Dir[File.join(out, "*")].each { |copy| refute_includes File.binread(copy), "Parser" }
    end
  end

  # Of a trace that is gone, under another compression, and under a name that it would no longer get.
  def test_other_copies_that_have_something_to_remove_are_named
    in_folder("a.fxt" => hosted("h7", "Parser#parse"), "gone.fxt" => hosted("h7", "Parser#gone"),
              "Parser.fxt" => hosted("h7", "Lexer#lex"), "clean.fxt" => hosted("h7", "Lexer#lex")) do |spool, out|
      assert_equal 0, tool("scrub", "-o", out, spool).status
      %w[gone clean].each { |name| File.delete(File.join(spool, "#{name}.fxt")) }
      result = tool("scrub", "-z", "none", "-o", out, "--remove", "Parser", spool)
      assert_equal %w[Parser a gone], result.err.scan(/(\w+)\.fxt\.gz: is no copy of a trace that is there now/).flatten.sort
      assert_equal 1, result.status
      %w[Parser a gone].each { |name| File.delete(File.join(out, "#{name}.fxt.gz")) }
      assert_equal 0, tool("scrub", "-z", "none", "-o", "#{out}/", "--remove", "Parser", spool).status
    end
  end

  # A fork's file, a compressed one, and names that are equal once something is removed.
  def test_each_trace_of_a_folder_has_a_copy_of_its_own
    traces = { "app.fxt" => hosted("h7", "one"), "app.fxt.11625" => hosted("h7", "two"),
               "app.fxt.gz" => Zlib.gzip(hosted("h7", "three").bytes),
               "Acme.fxt" => hosted("h7", "four"), "Apex.fxt" => hosted("h7", "five") }
    in_folder(traces) do |spool, out|
      command = ["scrub", "-z", "none", "--remove", "Acme|Apex", "-o", out, spool]
      assert_match(/5 traces are scrubbed, 0 were there already, 0 cannot be read$/, tool(*command).err)
      copies = Dir[File.join(out, "*")].map { |copy| File.binread(copy) }
      %w[one two three four five].each { |name| assert_equal 1, copies.count { |bytes| bytes.include?(name) }, name }
      assert_match(/0 traces are scrubbed, 5 were there already/, tool(*command).err)
      FileUtils.touch(File.join(spool, "Apex.fxt"), mtime: Time.now + 5)
      assert_match(/1 traces are scrubbed, 4 were there already/, tool(*command).err)
    end
  end

  def test_what_is_no_ordinary_file_stays_as_it_is
    Dir.mktmpdir do |dir|
      File.mkfifo(fifo = File.join(dir, "fifo"))
      File.binwrite(file = File.join(dir, "a.fxt"), trace.bytes)
      [fifo, "/dev/null"].each do |out|
        result = tool("scrub", "-o", out, file)
        assert_match(/: is no ordinary file: scrub reads what it has written/, result.err)
        assert_equal 2, result.status
        refute File.file?(out)
        assert_path_exists out
      end
    end
  end

  def test_what_cannot_be_read_keeps_no_other_from_being_copied
    in_folder("a.fxt" => "no trace at all", "b.fxt" => hosted("h7", "x")) do |spool, out|
      result = tool("scrub", "--keep-host", "--compress=none", "-o", out, spool)
      assert_match(%r{/spool/a\.fxt: }, result.err)
      assert_match(/1 traces are scrubbed, 0 were there already, 1 cannot be read$/, result.err)
      assert_equal [["b.fxt"], 4], [Dir.children(out), result.status]
    end
  end

  def test_copies_by_zstd_are_read_like_any_trace
    skip "the tool was built without libzstd" unless system("ldd #{TOOL} | grep -q zstd")
    in_folder("a.fxt" => trace) do |spool, out|
      tool("scrub", "-z", "zstd", "-o", out, spool)
      copy = File.join(out, "a.fxt.zst")
      assert_equal "\x28\xB5\x2F\xFD".b, File.binread(copy, 4)
      assert_equal 3, tool("dump", copy).out.lines.size
      File.binwrite(File.join(spool, "cut.fxt.zst"), File.binread(copy)[0...-20])
      assert_match(/the compressed data are damaged: they are truncated/, tool("info", File.join(spool, "cut.fxt.zst")).err)
    end
  end

  # More than there are hashes of four digits.
  def test_more_traces_with_one_name_than_short_hashes
    skip "it takes too long" if INSTRUMENTED
    Dir.mktmpdir do |dir|
      Dir.mkdir("#{dir}/in")
      2.times { |i| File.binwrite("#{dir}/empty#{i}", [0x0016547846040010].pack("Q<")) } # a file has 65,000 links at most
      count = (1 << 16) + 40
      count.times { |i| File.link("#{dir}/empty#{i % 2}", "#{dir}/in/secret#{i}.fxt") }
      command = [TOOL, "scrub", "--compress=none", "--remove=secret\\d+", "-o", "#{dir}/out", "#{dir}/in"]
      scrubbing = Process.spawn(*command, err: "#{dir}/err")
      waiting = Process.detach(scrubbing)
      ended = waiting.join(LONG)
      Process.kill(:KILL, scrubbing) && waiting.join unless ended
      assert ended, "it does not end"
      assert_match(/^vm-trace: #{count} traces are scrubbed, 0 were there already, 0 cannot be read$/, File.read("#{dir}/err"))
      assert_equal count, Dir.children("#{dir}/out").size
    end
  end

  def test_folder_is_not_scrubbed_into_itself
    in_folder("a.fxt" => trace) do |spool,|
      result = tool("scrub", "-o", spool, spool)
      assert_match(/is the folder of the traces; give another one/, result.err)
      assert_equal 2, result.status
    end
  end

  # Names of samples are in Perfetto's packets.
  def test_samples
    file = File.join(Conformance::OURS, "streams/exits_as_samples.fxt")
    before = File.binread(file)
    frame = tool("query", file, "select name from stack_profile_frame where name like '%#%' limit 1").out.lines.last
    name = frame[/(\w+)#/, 1]
    skip "the tool was built without SQLite" unless name
    assert_includes before, name
    result, bytes = scrub(before, "--remove", name)
    assert_equal 0, result.status, result.err
    refute_includes bytes, name
    with_file(bytes) do |path|
      sql = "select count(*), sum(depth) from stack_profile_callsite"
      assert_equal tool("query", file, sql).out, tool("query", path, sql).out
      assert_equal 0, tool("check", path).status
    end
  end

  def test_the_result_may_be_compressed
    result, bytes = scrub(trace, name: "out.fxt.gz")
    checked = "the result was read again, and nothing was left to remove"
    assert_match(/\Avm-trace: \d+ texts are changed in \d+ records; #{checked}\n\z/, result.err)
    assert_includes bytes, "*/order.rb"
  end

  # A pattern that matches only what another one leaves: the check of the result finds it.
  def test_a_result_with_something_left_is_deleted
    builder = FxtBuilder.simple { |b| b.event(:instant, "c", "axb", ts: 1) }
    result, bytes = scrub(builder, "--remove", 'a\*b', "--remove", "x")
    assert_equal [3, nil], [result.status, bytes]
    assert_match(/out\.fxt: is not written: something that was to be removed was found in what would be in it\n\z/,
                 result.err)
  end

  # Unknown records may hold anything.
  def test_records_that_cannot_be_searched_are_left_out
    builder = FxtBuilder.simple { |b| b.event(:instant, "c", "kept", ts: 1) }
    builder.raw([9 | 2 << 4, 0x7465726365735f61].pack("Q<*")) # a log record
    result, bytes = scrub(builder)
    assert_match(/; 1 records are left out: damaged, or of a kind that may hold texts anywhere;/, result.err)
    refute_includes bytes, "a_secret"
    assert_includes dump(bytes), "kept"
  end

  def test_wrong_usage
    with_file(trace) do |path|
      {
        %w[scrub] => [2, /scrub needs a file to read/],
        ["scrub", path] => [2, /-o OUT to write/],
        ["scrub", "-o", "#{path}.out", path, path] => [2, /takes one trace/],
        ["scrub", "-o", "#{path}.out", "-"] => [2, /give a file, not standard input/],
        ["scrub", "--remove", "(", "-o", "x", path] => [2, /--remove: \(: /],
        ["scrub", "-o", path, path] => [3, //],
      }.each do |arguments, (status, message)|
        result = tool(*arguments)
        assert_equal status, result.status, arguments.inspect
        assert_match(message, result.err)
      end
      assert_equal trace.bytes, File.binread(path)
    end
  end
end
