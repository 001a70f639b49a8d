# make deb: the packages install below a scratch root by dpkg itself, what is in them works from
# there, and nothing is left when they are removed.
#
# Once: packages differ by their names only.
require_relative "helper"
require "open3"

Integration.only "yjit" # once for each base

class TestPackages < Integration::Test
  NAME = "ruby#{BASE.delete_prefix("ruby-")}-vm-trace"
  TOP = Integration::ROOT

  def setup
    super
    missing = %w[dpkg dpkg-deb dpkg-shlibdeps strip].reject { |program| installed?(program) }
    skip "no #{missing.join(", ")} here" unless missing.empty?
    skip "dpkg needs root or fakeroot here" unless Process.uid == 0 || installed?("fakeroot")
    @root = scratch_dir
    @opt = "#{@root}/opt/#{NAME}"
  end

  def test_packages_install_work_and_leave_nothing_behind
    debs = self.class.packages
    prepare_dpkg(debs)
    before = files
    dpkg("--install", *debs)
    assert_only_its_own_places(files - before)
    assert_ruby_runs_from_there
    assert_programs_run
    assert_extension_compiles
    dpkg("--purge", NAME, "ruby-vm-trace")
    assert_equal before, files
  end

  def test_dpkg_refuses_a_package_without_the_libraries_that_it_needs
    debs = self.class.packages
    prepare_dpkg(debs, have: %w[libc6])
    out, status = dpkg_status("--install", debs.last)
    refute_predicate status, :success?
    assert_match(/#{NAME} depends on zlib1g/, out)
  end

  # [the tool's, the Ruby's]; made once.
  def self.packages
    @packages ||= %w[tool ruby].map do |what|
      out, status = Open3.capture2e({ "BASE" => BASE, "tool_version" => "0.1" }, "#{TOP}/scripts/deb.sh", what)
      raise out unless status.success?
      File.join(TOP, out[/^deb: (\S+\.deb)/, 1])
    end
  end

  private

  def installed?(program) = ENV["PATH"].split(":").any? { |folder| File.executable?("#{folder}/#{program}") }

  # The scratch root has, for dpkg, the libraries of this machine that the packages depend on.
  def prepare_dpkg(debs, have: nil)
    %w[info updates triggers].each { |folder| FileUtils.mkdir_p("#{@root}/var/lib/dpkg/#{folder}") }
    have ||= debs.flat_map { |deb| output("dpkg-deb", "-f", deb, "Depends").scan(/(?:\A|, )([a-z0-9.+-]+)/).flatten }.uniq
    stanzas = File.read("/var/lib/dpkg/status").split("\n\n").select { |stanza| have.include?(stanza[/\APackage: (.*)/, 1]) }
    File.write("#{@root}/var/lib/dpkg/status", stanzas.map { |stanza| "#{stanza}\n\n" }.join)
  end

  def dpkg_status(*arguments)
    command = ["dpkg", "--root=#{@root}", "--log=/dev/null", "--force-not-root", *arguments]
    command.unshift("fakeroot") unless Process.uid == 0
    Open3.capture2e({ "PATH" => "#{ENV["PATH"]}:/usr/sbin:/sbin", "LC_ALL" => "C" }, *command)
  end

  def dpkg(*arguments)
    out, status = dpkg_status(*arguments)
    assert_predicate status, :success?, out
  end

  def files = Dir.glob("**/*", File::FNM_DOTMATCH, base: @root).reject { |name| name.start_with?("var/lib/dpkg") || name.end_with?("/.") }.sort

  def assert_only_its_own_places(found)
    places = ["opt/#{NAME}", "usr/share/doc/#{NAME}", "usr/share/doc/ruby-vm-trace", "usr/bin/vm-trace", "usr/share/man/man1/vm-trace.1.gz",
              "usr/share/bash-completion/completions/vm-trace", "usr/share/zsh/vendor-completions/_vm-trace"]
    inside, rest = found.partition { |name| places.any? { |place| name == place || name.start_with?("#{place}/") } }
    assert_empty rest.reject { |name| places.any? { |place| place.start_with?("#{name}/") } }
    # A slim container may leave out manuals (dpkg's path-exclude).
    assert_empty (places - inside).grep_v(%r{/(man|doc)/})
  end

  # Nothing of it comes from the folder where it was built.
  def assert_ruby_runs_from_there
    assert_equal output(Integration::RUBY, "-v"), output("#{@opt}/bin/ruby", "-v")
    paths = output("#{@opt}/bin/ruby", "-e", "puts $LOAD_PATH, Gem.default_dir, RbConfig.ruby, RbConfig::CONFIG.values_at('prefix', 'rubyhdrdir')").lines(chomp: true)
    assert_empty paths.reject { |path| path.start_with?(File.realpath(@opt)) }
    assert_empty Dir.glob("**/*.{rb,pc,h}", base: @opt).select { |name| File.binread("#{@opt}/#{name}").include?(TOP) }
    assert_empty output("find", @opt, "-perm", "/022", "!", "-type", "l")

    file = "#{scratch_dir}/exits.fxt"
    output("#{@opt}/bin/ruby", *jit_flags(file), "#{TOP}/examples/demo.rb")
    output("#{@root}/usr/bin/vm-trace", "check", file)
    assert_match(/Exits by reason: [1-9]/, output("#{@root}/usr/bin/vm-trace", "report", "--all", file))
  end

  def jit_flags(file) = jit("--zjit --zjit-call-threshold=2 --zjit-trace-exits --zjit-trace-file=").split.tap { |flags| flags.last << file }

  def assert_programs_run
    %w[gem bundle erb irb].each do |name|
      program = "#{@opt}/bin/#{name}"
      next unless File.exist?(program) # a bundled gem in some Rubies
      assert_match(/\d+\.\d+/, output(program, "--version"), name)
    end
    assert_match(/^psych|^openssl/, output("#{@opt}/bin/gem", "list", "--local"))
  end

  def assert_extension_compiles
    dir = scratch_dir
    File.write("#{dir}/extconf.rb", "require 'mkmf'\nhave_header('ruby/vm_trace.h') or abort 'no header'\ncreate_makefile('mark')\n")
    File.write("#{dir}/mark.c", <<~'C')
      #include <ruby.h>
      #include <ruby/debug.h>
      #include <ruby/vm_trace.h>
      static unsigned long exits;
      static void on_exit_of_jit(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass) { exits++; }
      static VALUE count(VALUE self) { return ULONG2NUM(exits); }
      void Init_mark(void)
      {
          rb_vm_trace_marker_instant(rb_vm_trace_marker_name("from an extension"));
          rb_define_global_function("exits", count, 0);
      #ifdef RUBY_INTERNAL_EVENT_JIT_EXIT
          rb_add_event_hook(on_exit_of_jit, RUBY_INTERNAL_EVENT_JIT_EXIT, Qnil);
      #endif
      }
    C
    output("#{@opt}/bin/ruby", "extconf.rb", dir: dir)
    output("make", dir: dir)
    script = "require './mark'; def add(x) = x + 1; 40.times { add(1) }; 30.times { add(4611686018427387903) }; p exits"
    count = output("#{@opt}/bin/ruby", *jit("--zjit --zjit-call-threshold=2").split, "--vm-trace=markers", "--vm-trace-file=#{dir}/mark.fxt", "-e", script, dir: dir)[/^\d+$/].to_i
    BASE < "ruby-4.0" ? assert_equal(0, count) : assert_operator(count, :>=, 20) # Ruby 3 has no such events
    assert_includes output("#{@root}/usr/bin/vm-trace", "dump", "#{dir}/mark.fxt"), "from an extension"
  end

  def output(*command, dir: @root)
    environment = Integration::ENVIRONMENT.merge("PATH" => "/usr/bin:/bin", "MAKEFLAGS" => nil, "DESTDIR" => nil, "prefix" => nil)
    out, status = Open3.capture2e(environment, *command, chdir: dir)
    assert_predicate status, :success?, "#{command.join(" ")}\n#{out}"
    out
  end
end
