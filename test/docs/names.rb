# What a text of this repository names, and what of it is there. A word with "_" (a function, a type, a macro, a
# variable of the environment, a counter) is one of the code, comments left out, or of CRuby's source; a path leads to a
# file; an option is in a --help or in the code; goals and variables of make are in its Makefile.
require "open3"

module Names
  TOP = File.expand_path("../..", __dir__)
  FILES = IO.popen(%w[git ls-files -z], chdir: TOP, &:read).split("\0")
            .select { |file| File.file?(File.join(TOP, file)) }
  FOLDERS = FILES.grep(%r{/}).map { |file| file[%r{\A[^/]+}] }.uniq
  # CRuby's sources that were patched here, and the Rubies made of them.
  SOURCES = Dir[File.join(TOP, "build/ruby-*/src")]
  RUBIES = Dir[File.join(TOP, "build/ruby-*/ruby")]
  TOOL = File.join(TOP, "build/tool/vm-trace")

  # Names that others gave, and those of examples.
  FOREIGN = {
    "Linux, libc, Python" => %w[O_ASYNC EM_AARCH64 REG_STARTEND MAP_POPULATE MAX_ERRNO PERF_FORMAT_LOST
                                CLOSE_RANGE_UNSHARE PROC_PID_INIT_INO CONFIG_FTRACE_SYSCALLS malloc_consolidate
                                close_range sample_id memcpy_s pthread_getcpuclockid errno.h unistd.h close_range.h
                                PYTHONPATH --enable-coredump],
    "libraries" => %w[zlib.h zstd.h sqlite3.c sqlite3.h sqlite3ext.h percentile.c],
    "gems" => %w[compute_if_absent exec_query load_async parse_host_request_line],
    "installers of Rubies" => %w[RUBY_CONFIGURE_OPTS RUBY_APPLY_PATCHES MISE_RUBY_APPLY_PATCHES],
    "Zircon, and kinds without their prefix" => %w[thread_state_t OFF_CPU],
    "Perfetto" => %w[sequence_flags follower_descriptor_iids misplaced_end_event stackprofile_invalid_frame_id
                     enable_perfetto_grpc public_configs system_grpc absl_synchronization cpp_httplib
                     perfetto_grpc_library
                     generator_plugin_script generator_plugin_label link_deps gcs_trace_processor_loader worker_main
                     orchestrator_main metatrace_categories trace_summary gcs_
                     tools/install-build-deps],
    "files that CRuby's build makes, its variables" => %w[revision.h miniprelude.c VM_TRACE_PLATFORM],
    "examples" => %w[v3_3_9 v3_3_8 v3_3_11 v3_4_9 ruby_4_2.rs bases/ruby-4.2 patches/ruby-4.2 name.c name.h
                     KIND_TOOL
                     lost_us longest_us exit_interupt]
  }.values.flatten.freeze
  # Programs whose options are theirs.
  PROGRAMS = %w[apt-get curl docker git protoc rbenv ruby-build trace_processor valgrind worker_main
                tools/install-build-deps].freeze

  # Comments of C and Rust, and of what else is a program here.
  C_COMMENT = %r{/\*.*?\*/|//[^\n]*}m
  LINE_COMMENT = /^\s*#(?!!).*/

  WORD = %r{(?<![\w./$-])[A-Za-z]\w*_\w*\b(?![-./]\w)|(?<![\w-])[A-Z][A-Z0-9_]+(?==)}
  SOURCE_FILE = /\.(?:c|h|def|rs|sh)\z/
  BEFORE_PATH = %r{(?<![\w./~$*<"%@:>-])}
  FILE_NAME = /#{BEFORE_PATH}[\w-]+\.(?:c|h|def|rs|sh)\b(?![\w(])/
  PATH = /#{BEFORE_PATH}(?:[\w.*{},-]+\/)+[\w.*{},-]*[\w*\}]/
  OPTION = /(?<![\w-])--[a-z][\w-]*\w/

  module_function

  def text(file) = File.read(File.join(TOP, file), encoding: "UTF-8").scrub

  def comment(file) = file.match?(/\.(?:c|h|def|rs|y|patch)\z/) ? C_COMMENT : LINE_COMMENT

  def comments(file) = text(file).scan(comment(file))

  # The spans of code and the commands of a document.
  def of_document(text)
    spans = text.gsub(/^ *```.*?^ *```/m, "").scan(/`([^`]+)`/m).map { |(span)| span.gsub(/\s*\n\s*/, " ") }
    shell = text.scan(/^ *```sh\n(.*?)^ *```/m).flat_map { |(block)| block.gsub(/\\\n\s*/, " ").lines(chomp: true) }
    console = text.scan(/^ *```console\n(.*?)^ *```/m).flat_map { |(block)| block.scan(/^ *\$ (.*)/).flatten }
    plain = text.scan(/^ *```\n(.*?)^ *```/m).join.scan(/^ *(?:\$ )?((?:\S*vm-trace|make|ruby) .*)/).flatten
    spans + (shell + console + plain).map { |line| line.sub(/(?<=\s)#.*/, "") }
  end

  # What each text names of these kinds and is nowhere.
  def missing(texts, kinds = %i[word path option goal])
    names = texts.transform_values do |parts|
      parts.product(kinds).flat_map { |part, kind| send(:"missing_#{kind}s", part) }.uniq
    end
    there = in_cruby(names.values.flatten.uniq)
    names.transform_values { |list| list - there }.reject { |_, list| list.empty? }
  end

  def missing_words(text)
    text.gsub(/\b[a-z_]+_[A-Z]{2,}\w*/, "").scan(WORD).reject do |word|
      WORDS[word] || FOREIGN.include?(word) || word.end_with?("_") && WORDS.any? { |known, _| known.start_with?(word) }
    end
  end

  def missing_paths(text)
    paths = text.scan(PATH).select { |path| FOLDERS.include?(path[%r{\A[^/]+}]) || path.match?(SOURCE_FILE) }
    (text.scan(FILE_NAME) + paths).uniq.reject { |path| path?(path) }
  end

  # Capitals stand for what differs: patches/BASE/fixes.
  def path?(path)
    pattern = path.gsub(/\b[A-Z]+\b/, "*")
    return true if ENDS[path] || FOREIGN.include?(path) || FOREIGN.include?(File.basename(path))
    flags = File::FNM_EXTGLOB | File::FNM_PATHNAME
    pattern.match?(/[*{]/) && ENDS.any? { |known, _| File.fnmatch(pattern, known, flags) }
  end

  # An option after a command of the tool is one of that command's.
  def missing_options(text)
    text.split(/&&|[;|]/).flat_map do |command|
      program, subcommand = command.split.drop_while { |word| word.match?(/\A\w+=/) }
      next [] if PROGRAMS.include?(program)
      known = HELP[subcommand] if program&.end_with?("vm-trace") && subcommand != "record"
      command.scan(OPTION).map { |option| option.sub(/\A--vm-trace-/, "--zjit-trace-") } - FOREIGN - (known || OPTIONS)
    end
  end

  def missing_goals(text)
    text.gsub(/"[^"]*"|'[^']*'/, "x").split(/&&|[;|]/).flat_map do |command|
      words = command.strip[/\A(?:\w+=\S+ )*make (.*)/, 1].to_s.split.grep_v(/\A-|\A\.+\z/)
      words.map { |word| word[/\A\w+(?==)/] || word } - GOALS
    end
  end

  # Those of the names that CRuby's sources have: words, and options without what they begin with.
  def in_cruby(names)
    keys = names.to_h { |name| [name.sub(/\A--(?:[zy]jit-|(?=enable-|disable-))/, ""), name] }
                .select { |key, name| name.start_with?("--") ? key != name : name.match?(/\A\w*_\w*\z/) }
    files = %w[c h rs rb inc y def ac].map { |ending| "--include=*.#{ending}" }
    found, = Open3.capture2("grep", "-rhowF", "--exclude-dir=vm_trace", "--exclude-dir=.git", *files, "-f", "-",
                            *SOURCES, stdin_data: keys.keys.join("\n"))
    keys.values_at(*found.lines(chomp: true).uniq)
  end

  PROGRAM_FILES = FILES.grep_v(/\.md\z|\Atest\/(?:traces\/|docs\/.*names\.rb)/)
  CODE = PROGRAM_FILES.to_h { |file| [file, text(file).gsub(comment(file), " ")] }
  # A metric is called vm_trace_NAME.
  METRICS = CODE["tools/vm-trace/export/metrics.c"].scan(/"(\w+)"/).map { |(name)| "vm_trace_#{name}" }
  ALL_FILES = FILES + SOURCES.flat_map { |source| Dir.glob("**/*", base: source) }
  VIEWS = Open3.capture2(TOOL, "query", "--views")[0] # of the schema
  WORDS = [*CODE.values, *METRICS, *ALL_FILES, VIEWS].flat_map { |text| text.scan(/[a-zA-Z_]\w*/) }.to_h { [_1, true] }
  HELP = Open3.capture2(TOOL, "--help")[0][/^Commands:\n(.*?)\n\n/m, 1].scan(/^  (\w+)/).flatten.to_h do |command|
    [command, Open3.capture2(TOOL, command, "--help")[0].scan(OPTION)]
  end
  OPTIONS = RUBIES.flat_map { |ruby| Open3.capture2(ruby, "--help")[0].scan(OPTION) } | HELP.values.flatten |
            CODE.reject { |file, _| file.start_with?("test/") }.values.flat_map { |text| text.scan(OPTION) }
  GOALS = CODE.values_at("Makefile.in", "GNUmakefile").flat_map do |text|
    text.scan(/^([\w\/. -]+?):(?!=)/).flat_map { |(goals)| goals.split } | text.scan(/\$\(?(\w+)/).flatten
  end
  # All files and folders, by the ends of their paths: texts shorten them.
  ENDS = ALL_FILES.each_with_object({}) do |file, ends|
    parts = file.split("/")
    parts.size.times { |from| ends[parts[from..].join("/")] = true }
    parts.size.times { |to| ends[parts[0..to].join("/")] = true }
  end
end
