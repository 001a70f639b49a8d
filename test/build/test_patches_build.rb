# scripts/check-patches-build.sh: each patch must build with the module as it is, and what was built is not
# built again.

require_relative "project"

class TestPatchesBuild < BuildTest
  FILES = {
    ".gitignore" => "/configure\n",
    "configure.ac" => "",
    "autogen.sh" => <<~'SH',
      printf '#!/bin/sh\nsed "s,@src@,%s,; s,@options@,$*," "%s/Makefile.in" > Makefile\n' "$PWD" "$PWD" > configure
      chmod +x configure
    SH
    # It leaves a line in the project's folder for each patch that it builds.
    "Makefile.in" => <<~'MAKE',
      program: zjit.o vm_trace/host/a.o
      	case "@options@" in *--disable-vm-trace*|*MAKE=*/bmake*) ! grep 'only with' @src@/zjit.c ;; esac
      	case "@options@" in *MAKE=*/bmake*) [ "$$BSD" = yes ] ;; esac
      	echo built >> @src@/../../../../builds
      	printf '#!/bin/sh\n' > miniruby
      	chmod +x miniruby
      zjit.o: @src@/zjit.c
      	$(CC) -c -o $@ $<
      vm_trace/host/a.o: @src@/vm_trace/host/a.c
      	mkdir -p vm_trace/host
      	$(CC) -Werror=implicit-function-declaration -c -o $@ $<
    MAKE
  }.freeze

  def setup
    @project = Project.new(FILES)
    project.cache_source
    project.script("bin/bmake", 'BSD=yes exec make "$@"')
    project.write("project/vm_trace/host/a.c", "#include \"../../zjit.c\"\nint a(void) { return first(); }\n")
    project.patch("0001-first") { |text| text.sub("f10", "first") }
    project.patch("0002-second") { |text| text.sub("f15", "second") }
  end

  # Its lines, its status, and how many patches it built.
  def check(**env)
    before = builds
    out, err, status = project.run("check-patches-build.sh", **env)
    @err = err
    [out.lines(chomp: true), status, builds - before]
  end

  def builds = Dir[project.path("project/builds")].sum { |file| File.readlines(file).size }
  def ok(*patches) = patches.map { |patch| "ok - #{patch}.patch builds" }
  def all_ok(*patches) = ok(*patches) + %w[--disable-vm-trace bmake].map { |with| "ok - patches/small with #{with} builds" }
  def use(function)
    project.write("project/vm_trace/host/a.c", "#include \"../../zjit.c\"\nint a(void) { return #{function}(); }\n")
  end

  def test_each_patch_and_each_fix_is_built_once
    project.fix("one") { |text| text.sub("f19", "fixed") }
    all = all_ok("0001-first", "0002-second", "fixes/one")
    assert_equal [all, 0, 5], check, @err
    assert_equal [all, 0, 0], check
    assert_empty Dir[project.path("project/build/small/each/{src,obj*}")]
  end

  def test_a_patch_that_needs_a_later_one_fails
    use("second")
    assert_equal [["not ok - 0001-first.patch builds"], 1, 0], check
    assert_match(/implicit declaration of function .second/, @err)
  end

  def test_the_next_run_goes_on_at_the_patch_that_failed
    project.patch("0003-third") { |text| text.sub("first", "third") }
    assert_equal [[*ok("0001-first", "0002-second"), "not ok - 0003-third.patch builds"], 1, 2], check
    third = project.patch_path("0003-third")
    File.write(third, File.read(third).sub("+int third", "+int first(void), third"))
    assert_equal [all_ok("0001-first", "0002-second", "0003-third"), 0, 3], check, @err
  end

  def test_an_edited_patch_is_built_again_and_those_behind_it
    check
    project.patch("0003-third") { |text| text.sub("f19", "third") }
    assert_equal [all_ok("0001-first", "0002-second", "0003-third"), 0, 3], check
    File.write(project.patch_path("0002-second"), File.read(project.patch_path("0002-second")).sub("+int second", "+int other"))
    assert_equal [all_ok("0001-first", "0002-second", "0003-third"), 0, 4], check
  end

  def test_what_builds_only_with_the_module_fails
    project.patch("0003-third") { |text| text.sub("f19(void);", "f19(void); // only with the module") }
    without = "not ok - patches/small with --disable-vm-trace builds"
    assert_equal [[*ok("0001-first", "0002-second", "0003-third"), without], 1, 3], check
  end

  def test_with_another_module_all_are_built_again
    check
    use("f19")
    assert_equal [all_ok("0001-first", "0002-second"), 0, 4], check
  end

  def test_without_a_source_or_rustc_nothing_is_built
    project.script("bin/rustc", "echo 'rustc 0.9.0 (some build)'")
    assert_equal ["skip - 0001-first.patch builds: base small needs rustc >= 1.0, found: 0.9.0", 0, 0],
                 check.then { |lines, status, count| [lines.first[/.*found: [0-9.]*/], status, count] }
    FileUtils.rm_rf([project.ruby, project.cache])
    lines, *rest = check
    assert_equal ["skip - 0001-first.patch builds: the source of base small was not found", 0, 0], [lines.first, *rest]
  end
end
