# Which tests there are, and which of them a level runs. CONTRIBUTING.md has both levels in short.
#
# A file of tests says in a comment of its own what it depends on:
#   # Level: all. <why>              only `make check-all` runs it
#   # Once: <why>                    neither base nor JIT makes a difference
#   # Once for each base: <why>      the JIT makes none
#   # Once for each JIT: <why>       the base makes none
#   # Alone: <why>                   nothing runs beside it
#   # Entries: tests                 each of its tests is an entry of its own
#   # Bases: NAME...                 a test of documents that needs these Rubies; without the line, DOCUMENTED
require "open3"
require_relative "entry"

class Plan
  # What a pair of base and JIT runs that `make check` does not test as a whole.
  SMOKE = %w[counts flags runtime stacks].map { |name| "test/integration/test_#{name}.rb" }.freeze
  DOCUMENTED = "ruby-4.0"
  HEADER_BYTES = 4096
  LIST = <<~'RUBY'
    require "minitest"
    def Minitest.autorun; end
    load ARGV[0]
    Minitest.seed = 0
    puts Minitest::Runnable.runnables.flat_map { |tests| tests.runnable_methods.map { |method| "#{tests}##{method}" } }
  RUBY

  Pair = Struct.new(:base, :jit) do
    def to_s = "#{base} #{jit}"
  end

  attr_reader :skips, :skipped, :left_out

  # all: the level of check-all. changed: a hash of bases whose patches changed, with what changed.
  def initialize(all:, changed: {})
    @all, @changed = all, changed
    @skips, @skipped, @left_out = [], 0, 0
  end

  def entries(suites)
    @applications_alone = suites == %w[applications]
    found = suites.flat_map { |suite| send(suite) }
    builds = bases.select { |base| found.any? { |entry| entry.needs.include?(base) } }
    builds.map { |base| build_of(base, builds.size) } + found
  end

  # The requested ones: all if none was chosen, the chosen or default one first.
  def bases = @bases ||= [ENV.fetch("BASE"), *ENV["BASES"]&.split].uniq

  private

  # C unit tests of the module, each its own program; those of what differs between systems also by POSIX alone.
  def unit
    programs = Dir["test/unit/test_*.c"].sort.map { |source| "build/unit/#{File.basename(source, '.c')}" }
    (programs + ENV["POSIX_TESTS"].to_s.split).map { |program| cmocka("unit", program) }
  end

  # TOOL_TESTS: only the Ruby files with these names, or tests of them, as "query export:/sqlite/".
  def tool
    chosen = ENV["TOOL_TESTS"].to_s.split.to_h do |name|
      file, pattern = name.split(":", 2)
      ["test/tool/test_#{file}.rb", pattern]
    end
    files = Dir["test/tool/test_*.rb"].sort
    abort "there is no #{(chosen.keys - files).join(", ")}" unless (chosen.keys - files).empty?
    programs = Dir["test/tool/test_*.c"].sort.map { |source| cmocka("tool", "build/tool-test/#{File.basename(source, '.c')}") }
    programs + (chosen.empty? ? files : chosen.keys).flat_map { |file| minitest("tool", file, options: chosen[file] ? ["-n", chosen[file]] : []) }
  end

  # The scripts of the build itself, on small repositories made for the purpose. LONG=1 builds a Ruby from
  # the patch file, without these scripts.
  def build = Dir["test/build/test_*.rb"].sort.flat_map { |file| minitest("build", file) }

  # The comparison harness and its statistics, on made-up data and made-up rubies.
  def benchmarks = Dir["test/benchmarks/test_*.rb"].sort.flat_map { |file| minitest("benchmarks", file) }

  def patches
    bases.map { |base| checks("patches", base, "scripts/check-patches.sh") } +
      (@all ? bases : []).map do |base|
        checks("patches", base, "scripts/check-patches-build.sh", env: environment(base).merge("JOBS" => "1"))
      end
  end

  # Real applications, on the documents' base. A test takes its gems from the cache (scripts/gems.sh), or skips itself.
  # `make check-applications` runs all of them.
  def applications
    return [] unless bases.include?(DOCUMENTED)
    Dir["test/applications/test_*.rb"].sort.flat_map do |file|
      next [] unless @all || @applications_alone || !header(file).match?(/^# Level: all\. /)
      minitest("applications", file, nil, environment(DOCUMENTED), needs: [DOCUMENTED])
    end
  end

  # Static analysis; of what includes the headers of a Ruby for each base.
  def lint
    [checks("lint", bases.first, "scripts/lint.sh", "alone"),
     *bases.map { |base| checks("lint", base, "scripts/lint.sh", "ruby", needs: [base], without_ruby: :tell) }]
  end

  # A file decides itself for which bases and JITs it is (test/integration/jit.rb).
  def integration
    Dir["test/integration/test_*.rb"].sort.product(pairs).flat_map do |file, pair|
      next [] unless runs?(file, pair)
      minitest("integration", file, pair.to_s, environment(pair.base).merge("JIT" => pair.jit), needs: [pair.base])
    end
  end

  # The documents' commands.
  def docs
    Dir["test/docs/test_*.rb"].sort.flat_map do |file|
      needs = header(file)[/^# Bases: (.*)/, 1].to_s.split
      needs = [DOCUMENTED] if needs.empty?
      minitest("docs", file, nil, environment(needs.first), needs: needs & bases, without_ruby: :tell)
    end
  end

  SAMPLED = %w[--thresholds 30 --rates 97 --streams default,samples:100us].freeze

  # CRuby's own tests, traced, for bases with ZJIT: each exit and one in 97, and once more with samples at 100 us.
  def cruby
    suites = ["btest", "test-basic", *File.readlines("test/cruby/files", chomp: true).grep_v(/\A#/)]
    bases.select { |base| jits(base).include?("zjit") }.product(suites, [[], SAMPLED]).map do |base, suite, options|
      Entry.new(suite: "cruby", name: "cruby #{base} #{suite}#{" sampled" if options.any?}", reads: :sums, needs: [base],
                command: [RbConfig.ruby, "test/cruby/check.rb", "--only", suite, *options],
                env: environment(base).merge("RUBY_OBJ" => File.expand_path("build/#{base}/obj")))
    end
  end

  # A Ruby of its own, whose tracer has nothing but POSIX.
  def posix
    command = ["scripts/check-posix.sh"]
    [Entry.new(suite: "posix", name: "integration by POSIX", reads: :sums, command: command, alone: true)]
  end

  # On an emulated arm64, if the root for that is in the cache.
  def arm64
    sources = Dir["test/unit/test_*.c"].sort
    reason, status = Open3.capture2e("scripts/arm64-root.sh", "find")
    unless status.success?
      skip_files(sources, "arm64", reason.strip)
      return []
    end
    %w[unit tool integration].map do |suite|
      Entry.new(suite: "arm64", name: "arm64 #{suite}", reads: :sums, command: ["scripts/check-arm64.sh", suite], alone: true)
    end
  end

  # A pair is tested as a whole, or by a few files only.
  def pairs = @pairs ||= bases.flat_map { |base| jits(base).map { |jit| Pair.new(base, jit) } }
  def whole = @whole ||= pairs.select { |pair| @all || chosen? || @changed.key?(pair.base) || checked_jits(pair.base).include?(pair.jit) }
  def jits(base) = of_base(base, "jits")
  def checked_jits(base) = of_base(base, "checked_jits") || jits(base)
  def of_base(base, name) = File.read("bases/#{base}")[/^#{name}=(?:"([^"\n]*)"|([^"\n]*))$/, 0] && ($1 || $2).split
  def chosen? = bases.size < Dir["bases/*"].size

  def runs?(file, pair)
    return true if @all
    runs = !header(file).match?(/^# Level: all\. /) && (whole.include?(pair) ? first_of_its_kind?(file, pair) : SMOKE.include?(file))
    @left_out += 1 unless runs
    runs
  end

  # A base whose patches changed is tested by itself, as if there were no other.
  def first_of_its_kind?(file, pair)
    return true unless header(file) =~ /^# Once(?: for each (base|JIT))?: /
    kind = $1
    same = whole.select do |other|
      (@changed.key?(pair.base) ? other.base == pair.base : !@changed.key?(other.base)) &&
        (kind != "base" || other.base == pair.base) && (kind != "JIT" || other.jit == pair.jit)
    end
    only = File.read(file)[/^Integration\.only "([yz]jit)"/, 1]
    pair == (same.find { |other| only.nil? || other.jit == only } || same.first)
  end

  def header(file) = (@headers ||= {})[file] ||= File.read(file, HEADER_BYTES)

  # A given source is that of one base.
  def environment(base) = { "BASE" => base, **(base == ENV["BASE"] ? {} : { "RUBY_SOURCE" => nil }) }

  # Tests of CRuby run in the folder in which it was built.
  def build_of(base, builds)
    share = [ENV["JOBS"].to_i / builds, 1].max
    Entry.new(suite: "the patched Rubies", name: "build of #{base}", reads: :build, builds: base,
              command: ["scripts/build-ruby.sh", *("--objects" if @all)], env: environment(base).merge("JOBS" => share.to_s))
  end

  def checks(suite, base, command, *arguments, env: environment(base), **options)
    Entry.new(suite: suite, name: [command, *arguments, base].join(" "), reads: :checks, command: [command, *arguments],
              env: env, **options)
  end

  # UNIT_WRAPPER: a program that runs it, such as valgrind with its options.
  def cmocka(suite, program)
    Entry.new(suite: suite, name: program, reads: :cmocka, command: [*ENV["UNIT_WRAPPER"].to_s.split, program])
  end

  # -v names every test, and the reason of each that skips itself.
  def minitest(suite, file, variant = nil, env = {}, options: [], **rest)
    command = [RbConfig.ruby, "-w", "-Itest", "-I#{File.dirname(file)}", file, "-v", *options]
    name = [file, *variant].join(" ")
    alone = header(file).match?(/^# Alone: /)
    make = ->(label, more) { Entry.new(suite: suite, name: label, file: file, reads: :minitest, command: command + more, env: env, alone: alone, **rest) }
    return [make.(name, [])] unless options.empty? && header(file).match?(/^# Entries: tests/)
    tests_of(file, env).map { |test| make.("#{name} #{test[/#(test_)?(.*)/, 2]}", ["-n", test[/#(.*)/, 1]]) }
  end

  def tests_of(file, env)
    out, status = Open3.capture2(env, RbConfig.ruby, "-Itest", "-I#{File.dirname(file)}", "-e", LIST, file)
    abort "#{file} does not load" unless status.success?
    out.lines(chomp: true).sort
  end

  def skip_files(files, variant, reason)
    files.each do |file|
      tests = Plan.tests_in(file)
      @skipped += tests
      @skips << "#{file} #{variant}: #{tests} tests: #{reason}"
    end
  end

  public

  # Roughly: tests that a loop defines count as one.
  def self.tests_in(file) = File.read(file).scan(/^\s*(?:\w+ (?:\S+ )?)?(?:def test_|define_method\(?\s*:?"test_|isolated_test\(|cmocka_unit_test)/).size
end
