# make install, install-tool and uninstall: what goes where, and that files of others stay.

require_relative "project"

class TestInstall < BuildTest
  TOOL = {
    "tools/vm-trace/main.c" => "int\nmain(void)\n{\n    return 0;\n}\n",
    "tools/vm-trace/cli/vm-trace.1" => ".TH VM-TRACE 1\n",
    "tools/vm-trace/cli/completions/vm-trace.bash" => "",
    "tools/vm-trace/cli/completions/_vm-trace" => "",
  }.freeze
  TOOL_FILES = %w[bin/vm-trace share/bash-completion/completions/vm-trace share/man/man1/vm-trace.1 share/zsh/site-functions/_vm-trace].freeze
  RUBY_FILES = %w[bin/ruby lib/ruby/4.1.0/set.rb lib/ruby/link.rb].freeze

  def setup
    super
    project.add_makefiles
    project.configure
    TOOL.each { |name, text| project.write("project/#{name}", text) }
    stage("ruby 1", *RUBY_FILES)
  end

  # Replaces CRuby's build by one that makes a Ruby from these files.
  def stage(text, *files)
    project.script("project/scripts/build-ruby.sh", <<~SH)
      cd "$(dirname "$0")/../build" && rm -rf ruby-4.0/stage && mkdir -p ruby-4.0/stage && cd ruby-4.0/stage
      mkdir -p lib/ruby/empty
      for file in #{files.join(" ")}; do
          mkdir -p "${file%/*}"
          case $file in
          */link.rb) ln -s nowhere $file ;;
          *) echo "#{text}" > $file ;;
          esac
      done
    SH
  end

  def make(*goals, **variables)
    env = %w[MAKEFLAGS MAKELEVEL MAKE MAKEOVERRIDES MFLAGS BASE CC CFLAGS prefix DESTDIR].to_h { |name| [name.to_sym, nil] }
    arguments = { BASE: "ruby-4.0", prefix: "/opt/x", DESTDIR: project.path("root"), **variables }.map { |name, value| "#{name}=#{value}" }
    out, status = Open3.capture2e(project.env(**env), "make", *goals, *arguments, chdir: project.path("project"), stdin_data: "")
    [out, status.exitstatus]
  end

  def assert_make(...)
    out, status = make(...)
    assert_equal 0, status, out
    out
  end

  # Files in the prefix, without the lists of what was installed.
  def installed(root = "root/opt/x")
    Dir.glob("**/*", base: project.path(root)).reject { |name| File.directory?(File.join(project.path(root), name)) || name.include?("ruby-vm-trace") }.sort
  end

  def test_install_puts_all_below_the_prefix_and_uninstall_takes_it_away
    FileUtils.mkdir_p(project.path("root/opt/x"))
    assert_make "install"
    assert_equal (RUBY_FILES + TOOL_FILES).sort, installed
    assert_make "uninstall"
    assert_empty Dir.glob("**/*", base: project.path("root")).reject { |name| %w[opt opt/x].include?(name) }
  end

  def test_another_ruby_is_not_overwritten
    project.write("root/opt/x/bin/ruby", "theirs")
    out, status = make("install")
    refute_equal 0, status
    assert_match(%r{root/opt/x holds another Ruby; 1 of its files would be overwritten, such as\n  .*root/opt/x/bin/ruby\n.*prefix=.*install-tool.*FORCE=yes}, out)
    assert_equal ["bin/ruby"], installed
    assert_equal "theirs", project.read("root/opt/x/bin/ruby")
  end

  def test_a_link_of_another_ruby_counts_though_it_leads_nowhere
    FileUtils.mkdir_p(project.path("root/opt/x/bin"))
    File.symlink("nowhere", project.path("root/opt/x/bin/ruby"))
    refute_equal 0, make("install")[1]
  end

  def test_force_overwrites_it
    project.write("root/opt/x/bin/ruby", "theirs")
    refute_equal 0, make("install", FORCE: "1")[1], "only yes does"
    assert_make "install", FORCE: "yes"
    assert_equal "ruby 1\n", project.read("root/opt/x/bin/ruby")
  end

  def test_a_newer_build_replaces_ours_and_what_it_lacks_goes
    assert_make "install"
    stage("ruby 2", "bin/ruby", "bin/erb")
    assert_make "install"
    assert_equal "ruby 2\n", project.read("root/opt/x/bin/ruby")
    assert_equal (%w[bin/ruby bin/erb] + TOOL_FILES).sort, installed
    assert_make "uninstall"
    assert_empty installed
    refute_path_exists project.path("root/opt/x/lib"), "a folder of the first one"
  end

  def test_install_tool_needs_no_ruby_and_minds_none
    project.script("project/scripts/build-ruby.sh", "echo built; exit 1")
    project.write("root/opt/x/bin/ruby", "theirs")
    assert_make "install-tool"
    assert_equal (["bin/ruby"] + TOOL_FILES).sort, installed
    assert_predicate File.stat(project.path("root/opt/x/bin/vm-trace")), :executable?
  end

  def test_uninstall_leaves_what_others_put_there_and_says_so
    project.write("root/opt/x/bin/other", "theirs")
    FileUtils.mkdir_p(project.path("root/opt/x/lib"))
    assert_make "install"
    project.write("root/opt/x/lib/ruby/gems/mine.rb", "")
    out = assert_make("uninstall")
    assert_equal %w[bin/other lib/ruby/gems/mine.rb], installed
    assert_match(%r{left .*root/opt/x/lib/ruby/, which has other files}, out)
    FileUtils.rm_rf(project.path("root/opt/x/lib/ruby"))
    assert_path_exists project.path("root/opt/x/lib"), "it was there before"
  end

  def test_uninstall_where_nothing_is_says_where_it_looked
    out, status = make("uninstall")
    refute_equal 0, status
    assert_match(%r{nothing is installed in .*root/opt/x .*give the prefix and DESTDIR}, out)
  end
end
