# Texts of a trace, names of files and arguments are anybody's: no command prints a control character of theirs, in
# any kind of text.
require_relative "tool_helper"
require_relative "samples_trace"

class TestEscapes < Minitest::Test
  include ToolHelper

  # ESC, CSI as one character and as a byte, line ends, a tab, a bell, a direction, a separator of lines.
  EVIL = "\e[31mX\nINJECTED\r\a\t\u009b2JY\u202e\u2028\x7f".b + "\x9b3JZ".b
  # What must not be printed; the line end is looked for as the begin of a line.
  # U+0080 and above stay in the CSV of a query, as Perfetto has them, if it is not for a terminal.
  CONTROLS = /[\x00-\x09\x0b-\x1f\x7f\u0080-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|^INJECTED/

  ASCII_CONTROLS = /[\x00-\x09\x0b-\x1f\x7f]|^INJECTED/

  KNOWN = File.read(File.join(ROOT, "vm_trace/schema/events.def")).scan(/(?:FIXED|STRING)\(\w+, "([^"]*)"\)/).flatten.freeze

  # The trace with EVIL in its strings: before or behind the text, or before what is in parentheses. Of those that the
  # tool knows by name few are changed, else nothing would be recognized.
  def poison(bytes, random)
    bytes, poisoned = bytes.b, "".b
    until bytes.empty?
      header = bytes.unpack1("Q<")
      words = [(header >> 4) & 0xfff, 1].max
      record = bytes.slice!(0, 8 * words)
      poisoned << poison_record(record, header, random)
    end
    poisoned
  end

  def poison_record(record, header, random)
    case header & 0xf
    when 2
      len = header >> 32 & 0x7fff
      text = poison_text(record[8, len], random)
      return record if len == 0 || text.bytesize > 0x7fff
      body = text + "\0".b * (-text.bytesize % 8)
      [header & ~(0x7fff << 32 | 0xfff << 4) | text.bytesize << 32 | (1 + body.bytesize / 8) << 4].pack("Q<") + body
    when 0
      record.gsub(/(?<=\A.{8})[a-z]/mn, "\e")
    when 5 # names of frames, in Perfetto's packets, keep their length
      record.gsub(/[A-Z]\w{4,}#\w{2,}/n) { |name| "\e[31m\n\x9b".b + name[6..] }
    else
      record
    end
  end

  def poison_text(text, random)
    return text if random.rand >= (KNOWN.include?(text) ? 0.03 : 0.7)
    case random.rand(3)
    when 0 then text + EVIL
    when 1 then EVIL + text
    else text.include?("(") ? text.sub("(", EVIL + "(") : text + EVIL
    end
  end

  def deployed(version, begins)
    unix_ns = 1_795_694_400_000_000_000 + begins * 1_000_000_000
    StatesTrace.new(ends: 1000) do |t|
      t.event(:instant, :main, "trace", "host", 0, host: "web1#{EVIL}", unix_ns: [:uint64, unix_ns], service: "shop#{EVIL}",
              version: "#{version}#{EVIL}")
      t.site("GuardType#{EVIL}", "Foo#bar#{EVIL} (/app/a.rb:3)", 7 * begins + 1, lost: 1)
    end.build.bytes
  end

  def marked
    ThreadsTrace.new(settings: { exit_rate: [:uint64, 1], "set#{EVIL}": "x" }) do |t|
      t.event(:instant, :main, "marker#{EVIL}", "request#{EVIL}", 1, "id#{EVIL}": "7#{EVIL}")
      t.during(:main, "span#{EVIL}", "GET /#{EVIL}", 2, 90, "path#{EVIL}": "/#{EVIL}") do
        t.blocks(:main, "IO#{EVIL}", 4, 50, class: "TCPSocket#{EVIL}", fd: 3)
        t.allocates(:main, "Money#{EVIL}", 60, sample: 1, weight: 100, frames: ["Foo#new#{EVIL} (/a#{EVIL}.rb:3)"])
      end
      t.event(:instant, :main, "trace", "host", 95, host: "web#{EVIL}", service: "shop#{EVIL}", version: "1#{EVIL}")
      t.event(:instant, :main, "trace", "loss", 96, lost: [:uint64, 3], reason: "disk#{EVIL}")
    end.build.bytes
  end

  def samples
    SamplesTrace.new do |t|
      t.sample(:main, 5, 1, "compiled", "<main> (/app/run.rb:1)", "Working#working (/app/foo.rb:2)")
    end.build.bytes
  end

  def assert_escaped(result, what, controls = CONTROLS)
    { "stdout" => result.out, "stderr" => result.err }.each do |stream, text|
      assert text.valid_encoding?, "#{what}: #{stream} has bytes that are not UTF-8:\n#{text.scrub { |bytes| bytes.inspect }}"
      lines = text.lines.grep(stream == "stdout" ? controls : CONTROLS)
      assert_empty lines.map(&:inspect), "#{what}: #{stream}"
    end
    @shown |= (result.out + result.err).match?(/\\x1B\[31m|\\u001b\[31m/i)
    result
  end

  def assert_file_escaped(path, what)
    assert_escaped(Result.new(File.read(path, encoding: "UTF-8"), "", 0), what) if File.exist?(path)
  end

  def setup = @shown = false

  FORMATS = %w[text json markdown csv].freeze

  # Commands with a trace, and the files that they write for people.
  def commands(dir, path, other)
    reports = [%w[report], %w[report --advice], %w[report --samples --calls --syscalls --sched --endpoints --group=gem],
               %w[report --app-only], %w[explain], %w[info], %w[annotate],
               ["diff", other], ["history", "*"]]
    [*reports.product(FORMATS).map { |command, format| [command.first, "--format=#{format}", *command.drop(1)] },
     %w[check], %w[check --strict --unended --ractors=2], %w[dump], %w[metrics], ["metrics", "-l", 'a="b"'],
     ["diff", "--fail-over=0", "--fail-over=lost:0", "--fail-over=calls:0", "--comment=#{dir}/c.md", "--junit=#{dir}/j.xml", other],
     %w[report --table=no_such_table --reason=No*], %w[top --count=1],
     %w[export -f folded --threads], %w[export -f folded -k samples], %w[export -f folded -k blocked],
     %w[export -f folded -k calls], %w[export -f folded -k allocations], %w[export -f speedscope], %w[export -f chrome],
     %w[export -f firefox],
     %w[html], ["merge", "-o", "#{dir}/m.fxt"], ["cut", "-o", "#{dir}/m.fxt"], ["scrub", "-o", "#{dir}/m.fxt"],
     ["export", "--tables=#{dir}/t#{EVIL.scrub}"], ["export", "-f", "pprof", "--by=minute", "-o", "#{dir}/m#{EVIL.scrub}"],
     %w[query], %w[query --format=table], %w[query --format=json]]
      .map do |command|
        last = command.first == "query" ? "select s.*, a.* from slice s left join args a using (arg_set_id)" : nil
        last = "*" if command.first == "history"
        command -= ["*"] if command.first == "history"
        [*command, path, *last]
      end
  end

  def controls_of(command)
    command.first == "query" && command.none? { |word| word.start_with?("--format") } ? ASCII_CONTROLS : CONTROLS
  end

  def run_all(dir, path, other)
    commands(dir, path, other).each do |command|
      assert_escaped tool(*command), command.map { |word| word.delete_prefix("#{dir}/") }.inspect, controls_of(command)
      %w[c.md j.xml].each { |name| assert_file_escaped File.join(dir, name), "#{command.first} #{name}" }
    end
  end

  def traces
    files = Dir["#{TRACES}/*.fxt", "#{Conformance::OURS}/*.fxt", "#{Conformance::OURS}/streams/*.fxt"].sort
    files.reject { |file| file.end_with?("/calls_600_deep.fxt") }.map { |file| File.binread(file) } + [marked, samples, deployed(1, 1)]
  end

  def test_texts_of_traces
    random = Random.new(7)
    Dir.mktmpdir do |dir|
      path, other = "#{dir}/trace.fxt", "#{dir}/other.fxt"
      traces.each do |trace|
        File.binwrite(path, poison(trace, random))
        File.binwrite(other, poison(trace, random))
        @shown = false
        run_all(dir, path, other)
        assert @shown, "no command showed a changed text"
      end
    end
  end

  def test_versions
    Dir.mktmpdir do |dir|
      File.binwrite("#{dir}/1.fxt", deployed(1, 1))
      one = tool("diff", "--since-deploy", dir)
      assert_match(/has only the version/, assert_escaped(one, "one version").err)
      File.binwrite("#{dir}/2.fxt", deployed(2, 9))
      (FORMATS.map { |format| ["--format=#{format}"] } + [%w[--fail-over=0 --fail-over=lost:0]]).each do |options|
        result = assert_escaped tool("diff", "--since-deploy", *options, dir), options.inspect
        refute_empty result.out
      end
      assert_escaped tool("diff", "--since-deploy", "--service=no#{EVIL}", dir), "--service"
      File.binwrite("#{dir}/3.fxt", deployed(2, 9).gsub("shop".b, "cart".b))
      assert_match(/choose one with --service/, assert_escaped(tool("diff", "--since-deploy", dir), "services").err)
    end
  end

  # In messages, heads, tables; a folder, too.
  def test_names_of_files
    Dir.mktmpdir do |dir|
      folder = "#{dir}/#{EVIL}"
      Dir.mkdir(folder)
      path, other = "#{folder}/#{EVIL}.fxt", "#{folder}/b#{EVIL}.fxt"
      [path, other].each { |name| File.binwrite(name, OurTrace.new.build.bytes[0..-9]) }
      run_all(dir, path, other)
      run_all(dir, "#{path}.none", other)
      run_all(dir, folder, folder)
      File.write(path, "no trace")
      run_all(dir, path, other)
      File.delete(path, other)
      run_all(dir, folder, folder)
      assert_escaped tool("record", "-o", "#{folder}/out", "#{folder}/no such program"), "record"
      assert_escaped tool("record", "-o", "#{folder}/out", "ruby", "-e", "1"), "record"
      File.symlink(RbConfig.ruby, "#{folder}/ruby")
      assert_escaped tool("record", "-o", "#{folder}/out", "#{folder}/ruby", "-e", "1"), "record"
      assert_escaped tool("report", "#{TRACES}/exits.fxt", "-o", folder), "report -o"
      %w[html merge cut export\ -f\ folded export\ --sqlite metrics].each do |command|
        name, *options = command.split
        assert_escaped tool(name, *options, *("-o" unless options.include?("--sqlite")), "#{folder}/no/out", "#{TRACES}/exits.fxt"), command
      end
    end
  end

  def test_arguments
    trace = "#{TRACES}/exits.fxt"
    evil = "x#{EVIL}"
    [[evil], ["help", evil], %w[report] + ["--#{evil}"], ["report", "-\e"], ["report", "--reason=#{evil}", trace],
     ["report", "--table=#{evil}", trace],
     ["report", "--top=#{evil}", trace], ["report", "--since=#{evil}", trace], ["report", "--format=#{evil}", trace],
     ["report", "--advice=#{evil}", trace], ["report", "--s=#{evil}", trace],
     ["report", "--method=#{evil}", "--thread=#{evil}", trace],
     ["history", trace, evil], ["history", trace, EVIL], ["explain", evil], ["annotate", trace, evil], ["top", evil],
     ["query", trace, "select '#{evil}'x, * from \"#{evil}\""], ["query", trace, "select 'a' regexp '(#{evil}'"],
     ["query", trace, "include perfetto module #{evil}"], ["query", "--file", evil, trace],
     ["query", "--format=#{evil}", trace, "select 1"],
     ["query", trace, evil], ["query", trace, "create perfetto function #{evil}"],
     ["query", "--format=table", trace, "select 1 as \"#{evil}\""],
     ["diff", "--fail-over=#{evil}", trace, trace], ["diff", "--fail-over=lost:#{evil}", trace, trace],
     ["diff", "--map=#{evil}", trace, trace],
     ["diff", "--normalize=#{evil}", trace, trace], ["diff", "--kind=#{evil}", trace, trace],
     ["diff", "--comment=#{evil}/x", trace, trace],
     ["export", "--format=#{evil}", trace], ["export", "--kind=#{evil}", trace], ["export", "--weight=#{evil}", trace],
     ["export", "--by=#{evil}", trace], ["export", "--table-format=#{evil}", trace], ["metrics", "--labels=#{evil}", trace],
     ["metrics", "--labels=a=\"#{evil}\"", trace], ["metrics", "--labels=a=\"\e\"", trace],
     ["scrub", "--remove=(#{evil}", "-o", "x", trace], ["scrub", "--compress=#{evil}", trace],
     ["html", "--against=#{evil}", trace],
     ["html", "--below=#{evil}", "--sources", trace], ["record", "--vm-trace=#{evil}", "-o", "/none/#{evil}", "true"],
     ["record", "--pid=#{evil}"],
     ["start", evil], ["start", "--keep=#{evil}", "1"], ["stop", evil], ["status", evil], ["save", evil],
     ["cut", "--since=#{evil}", trace]]
      .each do |command|
        assert_escaped tool(*command), command.inspect, controls_of(command)
      end
  end
end
