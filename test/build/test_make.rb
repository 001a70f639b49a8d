# make itself: from a fresh clone, with messages for what is missing; edits rebuild what depends on
# them.

require_relative "project"

class TestMake < BuildTest
  TOOL = {
    "tools/vm-trace/main.c" => %(#include "answer.h"\n#include <stdio.h>\nint\nmain(void)\n{\n    printf("%d\\n", ANSWER);\n    return 0;\n}\n),
    "tools/vm-trace/answer.h" => "#define ANSWER 42\n",
    "tools/vm-trace/other.c" => "int other(void);\nint\nother(void)\n{\n    return 1;\n}\n",
    "tools/vm-trace/cli/vm-trace.1" => ".TH VM-TRACE 1\n",
  }.freeze

  def setup
    super
    project.add_makefiles
    TOOL.each { |name, text| project.write("project/#{name}", text) }
  end

  def make(*args, dir: project.path("project"), **env)
    env = { "MAKEFLAGS" => nil, "MAKELEVEL" => nil, "MAKE" => nil, "MAKEOVERRIDES" => nil, "MFLAGS" => nil, "BASE" => nil, "CC" => nil,
            "CFLAGS" => nil, "CCACHE" => nil, "CCACHE_DIR" => nil, "CCACHE_BASEDIR" => nil,
            "TOOL_WRAPPER" => nil, "EMULATED" => nil, "ASAN_OPTIONS" => nil, "MSAN_OPTIONS" => nil, **env }
    out, status = Open3.capture2e(project.env(**env.transform_keys(&:to_sym)), "make", *args, chdir: dir, stdin_data: "")
    [out, status.exitstatus]
  end

  def assert_make(*args, **options)
    out, status = make(*args, **options)
    assert_equal 0, status, out
    out
  end

  def tool = `#{project.path("project/build/tool/vm-trace")}`.chomp

  def test_one_command_configures_and_builds
    assert_make "tool"
    assert_equal "42", tool
  end

  def test_fixes_are_chosen_by_configure_or_for_one_make
    project.run("source.sh", "cache", BASE: "ruby-4.0", RUBY_SOURCE: project.ruby)
    project.patch("0001-first") { |text| text.sub("f5", "first") }
    project.fix("one") { |text| text.sub("f17", "fixed") }
    project.configure
    configure = ->(option) { Open3.capture2e(project.env, "./configure", "--silent", option, chdir: project.path("project")) }
    fixed = -> { assert_make "src"; project.read("project/build/ruby-4.0/src/zjit.c").include?("fixed") }
    refute fixed.()
    out, status = configure.("--with-fixes=one,tow")
    refute_predicate status, :success?
    assert_includes out, 'there is no fix "tow"; patches/*/fixes has: one'
    out, status = configure.("--with-fixes=one")
    assert_predicate status, :success?, out
    assert fixed.()
    assert_make "src", "FIXES="
    refute_includes project.read("project/build/ruby-4.0/src/zjit.c"), "fixed"
    out, status = make("src", "FIXES=tow")
    assert_equal [2, true], [status, out.include?('there is no fix "tow" (FIXES, or --with-fixes')], out
  end

  def test_a_second_time_does_nothing
    project.configure
    assert_make "tool"
    assert_empty assert_make("tool")
  end

  # `make check` asks for other files first than `make`; while it runs, a test of the README runs `make`.
  def test_another_goal_does_not_rebuild
    project.configure
    assert_make "tool"
    refute_match(/CC/, assert_make("build/tool/other.o"))
    assert_empty assert_make("tool")
  end

  def test_an_edited_header_rebuilds_what_includes_it_and_no_more
    project.configure
    assert_make "tool"
    project.write("project/tools/vm-trace/answer.h", "#define ANSWER 43\n")
    out = assert_make("tool")
    assert_equal "43", tool
    assert_includes out, "main.c"
    refute_includes out, "other.c"
  end

  def test_another_version_rebuilds_what_says_it
    main = "#include <stdio.h>\nint\nmain(void)\n{\n    puts(VM_TRACE_VERSION);\n    return 0;\n}\n"
    project.write("project/tools/vm-trace/main.c", main)
    project.configure
    File.utime(1, 1, project.path("project/configure")) # autoconf sees no edit within a second
    assert_make "tool"
    text = project.read("project/configure.ac")
    project.write("project/configure.ac", text.sub(/^(AC_INIT\(\[ruby-vm-trace\], )\[.*\]/, '\1[99.9]'))
    out = assert_make("tool")
    assert_equal "99.9", tool
    refute_includes out, "other.c"
  end

  def test_other_flags_rebuild
    project.configure
    assert_make "tool"
    assert_includes assert_make("tool", "CFLAGS=-O0 -DANSWER=1"), "other.c"
  end

  # A compiler that writes its arguments into a file, and refuses those that match the pattern of a shell.
  def compiler(refused)
    log, real = project.path("compiled"), `which cc`.chomp
    %w[cc gcc].each do |name|
      project.script("bin/#{name}", <<~SH)
        case "$*" in #{refused}) echo '#{name}: not with me' >&2; exit 1 ;; esac
        echo "$*" >> #{log}
        exec #{real} "$@"
      SH
    end
  end

  # What `make instrumented` links with the tool.
  def add_sources_for_tests
    FileUtils.mkdir_p(project.path("project/test/tool"))
    sources = %w[serve.c work.c].map { |file| "#{Project::ROOT}/test/tool/#{file}" }
    FileUtils.cp(sources, project.path("project/test/tool"))
  end

  def instrumented(kind) = project.path("project/build/#{kind}/vm-trace")
  def fault(kind) = project.read("project/build/#{kind}/fault")

  def test_tools_for_tests_are_built_with_flags_of_their_own
    project.configure
    add_sources_for_tests
    compiler("none")
    assert_make "instrumented", "CFLAGS=-O3"
    %w[sanitized counting].each { |kind| assert_equal "42\n", `#{instrumented(kind)}` }
    compiled = project.read("compiled").lines.grep(/ -c /)
    flags = [/-fsanitize=address,undefined/, /-fsanitize-coverage=trace-pc/, /-O3/]
    assert_equal [3, 4, 0], flags.map { |flag| compiled.grep(flag).size }
    assert_empty assert_make("instrumented", "CFLAGS=-O3")
    project.write("project/tools/vm-trace/answer.h", "#define ANSWER 43\n")
    out = assert_make("instrumented", "CFLAGS=-O3")
    assert_equal %w[main.o vm-trace] * 2, out.scan(/^  (?:CC|LINK) +\S+\/(\S+)$/).flatten
    system({ "WORK" => project.path("work") }, instrumented("counting"), out: File::NULL)
    assert_match(/\A[1-9]\d* \d+ \d+\n\z/, project.read("work"))
  end

  def test_a_compiler_that_cannot_build_a_tool_for_tests_says_so_and_stops_nothing
    project.configure
    add_sources_for_tests
    compiler("*-fsanitize=*")
    assert_make "instrumented"
    assert_equal [false, true], %w[sanitized counting].map { |kind| File.exist?(instrumented(kind)) }
    assert_equal ["gcc: not with me\n" * 2, ""], %w[sanitized counting].map { |kind| fault(kind) }
    compiler("*trace-pc*")
    assert_make "instrumented", "CFLAGS=-O3"
    assert_path_exists instrumented("sanitized")
    assert_equal %w[gcc cc gcc].map { |name| "#{name}: not with me\n" }.join, fault("counting")
  end

  def test_tools_for_tests_that_are_skipped_are_not_built
    project.configure
    assert_make "instrumented", TOOL_WRAPPER: "valgrind"
    assert_make "instrumented", EMULATED: "yes"
    assert_make "instrumented", MSAN_OPTIONS: "exit_code=99"
    assert_empty Dir[project.path("project/build/{sanitized,counting}/*.o")]
  end

  # A ccache that writes down what it is called for.
  def ccache
    project.script("bin/ccache", <<~SH)
      echo "$CCACHE_DIR $CCACHE_BASEDIR $*" >> #{project.path("cached")}
      exec "$@"
    SH
  end

  def cached = File.exist?(project.path("cached")) ? project.read("cached").lines(chomp: true) : []

  def test_sources_are_compiled_through_ccache_with_the_cache_of_all_clones
    project.configure
    ccache
    assert_make "tool"
    assert_equal 2, cached.size
    cached.each { |line| assert_match(/\A#{project.cache}\/ccache #{project.path("project")} gcc .* -c -o /, line) }
    assert_make "clean"
    assert_make "tool", "CCACHE=no"
    assert_equal 2, cached.size
  end

  def test_a_compiler_that_is_ccache_already_stays_as_it_is
    project.configure
    ccache
    assert_make "tool", "CC=ccache gcc", CCACHE_DIR: "/mine", DEPS: "no"
    refute_empty cached
    cached.each { |line| assert_match(%r{\A/mine  gcc }, line) }
  end

  def test_without_a_cache_that_can_be_written_there_is_no_ccache
    project.configure
    ccache
    project.write("home/.cache", "a file")
    assert_make "tool"
    assert_empty cached
  end

  def test_v_shows_the_commands
    project.configure
    assert_match(/-c -o build\/tool\/main\.o/, assert_make("tool", "V=1"))
    refute_match(/-c -o/, assert_make("clean") + assert_make("tool"))
  end

  def test_configure_alone_stops_there_for_options_to_be_given
    assert_make "configure"
    assert File.exist?(project.path("project/configure"))
    refute File.exist?(project.path("project/Makefile"))
  end

  def test_clean_and_distclean
    assert_make "tool"
    before = Dir.glob("**/*", File::FNM_DOTMATCH, base: project.path("project"))
    %w[src obj stage base-obj base-stage each].each { |folder| project.write("project/build/small/#{folder}/x", "") }
    %w[ruby built base-ruby base-built build.log].each { |file| project.write("project/build/small/#{file}", "") }
    assert_make "clean"
    refute File.exist?(project.path("project/build/tool"))
    assert_equal ["src"], Dir.children(project.path("project/build/small"))
    FileUtils.rm_rf(project.path("project/build/small"))
    assert_make "distclean"
    after = Dir.glob("**/*", File::FNM_DOTMATCH, base: project.path("project"))
    assert_empty after.grep(/\A(build|configure|config\.|Makefile\z|autom4te)/) - ["configure.ac"], before
  end

  def test_clean_in_a_fresh_clone_makes_nothing
    assert_make "clean"
    assert_make "distclean"
    refute File.exist?(project.path("project/configure"))
  end

  def test_distclean_does_not_lose_work
    project.configure
    project.run("source.sh", "cache", RUBY_SOURCE: project.ruby, BASE: "ruby-4.0")
    assert_make "src"
    project.write("project/build/ruby-4.0/src/zjit.c", "mine\n")
    out, status = make("distclean")
    refute_equal 0, status
    assert_includes out, " M zjit.c"
    assert_equal "mine\n", project.read("project/build/ruby-4.0/src/zjit.c")
    assert_make "distclean", "FORCE=1"
  end

  def test_unknown_base_is_refused_by_configure
    assert_make "configure"
    out, status = Open3.capture2e(project.env, "./configure", "--with-base=ruby-9", chdir: project.path("project"))
    refute_predicate status, :success?
    assert_includes out, 'there is no base "ruby-9"; bases/ has: ruby-4.0'
  end

  def test_configured_source_is_used
    assert_make "configure"
    out, status = Open3.capture2e(project.env, "./configure", "--with-ruby-source=#{project.ruby}", chdir: project.path("project"))
    assert_predicate status, :success?, out
    assert_includes assert_make("src"), "using RUBY_SOURCE=#{project.ruby}"
  end

  def test_a_path_with_a_space_is_refused_early
    FileUtils.mv(project.path("project"), project.path("my project"))
    out, status = make("tool", dir: project.path("my project"))
    refute_equal 0, status
    assert_includes out, "holds a space"
  end

  def test_missing_packages_are_named_in_one_line_when_they_may_not_be_installed
    %w[autoconf ruby].each { |name| project.script("bin/#{name}", "exit 127") }
    project.script("bin/cc", "exit 1")
    out, err, status = project.run("deps.sh", DEPS: "no", BASE: "ruby-4.0")
    assert_equal 1, status
    assert_empty out
    line = err.lines.grep(/apt-get install/)
    assert_equal 1, line.size, err
    assert_match(/ libc6-dev .*libyaml-dev .*libcmocka-dev/, line.first)
  end

  # An apt-get whose lists are out of date: it has the package after an update.
  def test_missing_packages_are_installed_after_an_update_where_they_are_not_known
    skip "it installs on Debian only" unless File.exist?("/etc/debian_version")
    project.script("bin/id", "echo 0")
    project.script("bin/apt-get", <<~SH)
      case $1 in
      update) touch #{project.path("lists")} ;;
      install) [ -e #{project.path("lists")} ] && ln -s /bin/true #{project.path("bin/no-such-program")} ;;
      esac
    SH
    _, err, status = project.run("deps.sh", "no-such-program:its-package", BASE: "ruby-4.0")
    assert_equal 0, status, err
    assert_match(/^Missing build packages: its-package$/, err)
    assert_path_exists project.path("bin/no-such-program")
  end

  def test_missing_rustc_is_named_and_stops_nothing
    project.script("bin/rustc", "echo rustc 0.9.0")
    _, err, status = project.run("deps.sh", DEPS: "no", BASE: "ruby-4.0")
    assert_equal 0, status, err
    assert_includes err, "needs rustc >= 1.0, found: 0.9.0"
  end

  def test_a_ruby_is_not_built_with_a_rustc_that_is_too_old_and_the_reason_is_kept_for_the_tests
    project.configure
    { "echo 'rustc 0.9.0 (old)'" => "found: 0.9.0", "exit 127" => "found: there is none" }.each do |rustc, found|
      project.script("bin/rustc", rustc)
      out, status = make("ruby", "BASE=ruby-4.0")
      refute_equal 0, status, out
      assert_match(/build: base ruby-4.0 needs rustc >= 1.0, #{found} \(get it from https:.*package rustc/, out)
      assert_includes project.read("project/build/ruby-4.0/unavailable"), found
    end
  end

  # CC=... or DESTDIR=... are not for CRuby's make.
  def test_the_number_of_jobs_is_passed_on_and_other_flags_are_not
    project.configure
    project.script("project/scripts/build-ruby.sh", 'echo "jobs: $JOBS; flags: $MAKEFLAGS$MAKEOVERRIDES"')
    { %w[-j3 DESTDIR=/x] => "3", [] => "" }.each do |options, jobs|
      out, status = make("ruby", "BASE=ruby-4.0", *options)
      assert_equal 0, status, out
      assert_includes out.lines(chomp: true), "jobs: #{jobs}; flags: "
    end
  end

  # --- the base if none was chosen ---

  def all_bases(with_source: %w[ruby-3.3])
    base = project.read("project/bases/ruby-4.0")
    %w[ruby-4.0 ruby-4.1 ruby-3.4 ruby-3.3].each_with_index do |name, i|
      other = base.sub(project.commit, (i + 1).to_s * 40).sub(project.tree, (i + 5).to_s * 40)
      pinned = with_source.include?(name) ? base : other
      project.write("project/bases/#{name}", pinned)
    end
  end

  def default_base(*goals, **env) = project.run("default-base.sh", *goals, BASE: nil, **env)

  def test_the_stable_release_is_the_default_where_its_source_is_and_a_line_says_so
    all_bases(with_source: %w[ruby-4.0 ruby-4.1 ruby-3.4 ruby-3.3])
    project.run("source.sh", "cache", RUBY_SOURCE: project.ruby, BASE: "ruby-4.0")
    out, err, status = default_base("demo")
    assert_equal ["ruby-4.0\n", 0], [out, status], err
    assert_equal 1, err.lines.grep(/\AUsing base ruby-4\.0 \(BASE=NAME .*\)\.$/).size, err
    project.write("project/build/ruby-4.0/built", "")
    assert_equal ["ruby-4.0\n", "", 0], default_base("demo")
  end

  def test_the_next_is_the_default_where_it_is_not_and_one_line_says_why
    all_bases
    project.run("source.sh", "cache", RUBY_SOURCE: project.ruby, BASE: "ruby-3.3")
    out, err, status = default_base("demo")
    assert_equal ["ruby-3.3\n", 0], [out, status], err
    line = err.lines.grep(/\AUsing base ruby-3.3/)
    assert_equal 1, line.size, err
    assert_includes line.first, "not ruby-4.0: its source is not available here (make ruby-source BASE=ruby-4.0 RUBY_SOURCE=DIR"
    assert_includes line.first, "not ruby-4.1: its source"
    refute_includes err, "was not found"
  end

  def test_a_given_source_is_that_of_the_base_that_it_fits
    all_bases(with_source: %w[ruby-4.1])
    project.write("project/build/ruby-4.0/built", "")
    out, err, status = default_base("demo", RUBY_SOURCE: project.ruby)
    assert_equal ["ruby-4.1\n", 0], [out, status], err
    assert_includes err, "not ruby-4.0: RUBY_SOURCE=#{project.ruby} is not its source"
  end

  def test_the_next_is_the_default_where_rustc_is_too_old
    all_bases(with_source: %w[ruby-4.0 ruby-4.1 ruby-3.4 ruby-3.3])
    project.write("project/bases/ruby-4.0", project.read("project/bases/ruby-4.0").sub("rustc_min=1.0", "rustc_min=99.1"))
    project.run("source.sh", "cache", RUBY_SOURCE: project.ruby, BASE: "ruby-4.1")
    out, err, = default_base("all")
    assert_equal "ruby-4.1\n", out
    assert_includes err, "needs rustc >= 99.1"
  end

  def test_where_there_is_no_source_the_first_says_what_was_looked_for
    all_bases(with_source: [])
    out, _, status = default_base("all")
    assert_equal ["ruby-4.0\n", 0], [out, status]
  end

  def test_goals_without_ruby_look_for_no_source
    all_bases
    out, err, = default_base("tool", "check-unit", "install-tool", "uninstall")
    assert_equal ["ruby-4.0\n", ""], [out, err]
  end

  def test_a_chosen_base_is_used_whatever_can_be_had
    all_bases
    project.run("source.sh", "cache", RUBY_SOURCE: project.ruby, BASE: "ruby-3.3")
    assert_make "src", "BASE=ruby-3.3"
    assert_path_exists project.path("project/build/ruby-3.3/src")
    refute_path_exists project.path("project/build/ruby-4.0")
    refute_path_exists project.path("project/build/ruby-4.1")
  end
end
