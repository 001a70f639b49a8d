# scripts/build-ruby.sh: a Ruby that was built once from the same inputs is not built again, in whichever
# clone, and one that differs in anything is.

require_relative "project"

class TestBuildRuby < BuildTest
  FILES = {
    ".gitignore" => "#{Project::FILES[".gitignore"]}/revision.h\n",
    "configure.ac" => "",
    "autogen.sh" => <<~'SH',
      cat > configure <<'END'
      #!/bin/sh
      src=$(cd "$(dirname "$0")" && pwd)
      mkdir -p .ext/include/ruby
      touch id.h .ext/include/ruby/config.h
      sed "s,@src@,$src," "$src/Makefile.in" > Makefile
      echo "configure:1: result: $RESULT" > config.log
      END
      chmod +x configure
    SH
    # It leaves a line in obj/compiled for each file that it compiles.
    "Makefile.in" => <<~'MAKE',
      ruby: zjit.o
      	printf '#!/bin/sh\necho "ruby small from %s"\n' "$$(cksum < @src@/zjit.c)" > ruby
      	chmod +x ruby; touch libruby-static.a
      zjit.o: @src@/zjit.c
      	echo zjit.c >> compiled
      	touch zjit.o
      install: ruby
      	mkdir -p $(DESTDIR)/bin $(DESTDIR)/lib
      	cp ruby $(DESTDIR)/bin; cp libruby-static.a $(DESTDIR)/lib
    MAKE
  }.freeze

  def setup
    @project = Project.new(FILES)
    project.cache_source
  end

  def build(*options, in_project: "project", **env)
    out, err, status = Open3.capture3(project.env(**env), project.path("#{in_project}/scripts/build-ruby.sh"), *options, stdin_data: "")
    assert_predicate status, :success?, out + err
    assert_path_exists project.path("#{in_project}/build/small/#{"base-" if options.include?("--base")}ruby")
    err
  end

  def compiled(in_project = "project") = Dir[project.path("#{in_project}/build/small/obj/compiled")].sum { |file| File.readlines(file).size }

  def another_clone(name = "other")
    FileUtils.cp_r(project.path("project"), project.path(name))
    FileUtils.rm_rf(project.path("#{name}/build"))
    name
  end

  def test_the_same_inputs_are_built_once_for_all_clones
    assert_match(/building CRuby/, build)
    assert_equal 1, compiled
    assert_empty build
    other = another_clone
    assert_match(/built before from the same source/, build(in_project: other))
    assert_equal 0, compiled(other)
    assert_path_exists project.path("other/build/small/obj/.ext/include/ruby/config.h")
    assert_path_exists project.path("other/build/small/obj/id.h")
    assert_equal `#{project.path("project/build/small/ruby")}`, `#{project.path("other/build/small/ruby")}`
    assert_empty build(in_project: other)
  end

  def test_a_clone_that_needs_objects_builds_them
    build
    other = another_clone
    build(in_project: other)
    assert_match(/building CRuby/, build("--objects", in_project: other))
    assert_equal 1, compiled(other)
    assert_empty build("--objects", in_project: other)
  end

  def test_another_patch_module_compiler_or_option_is_another_ruby
    build
    { "a patch" => -> { project.patch("0001-first") { |text| text.sub("f10", "first") } },
      "the module" => -> { project.write("project/vm_trace/a.c", "int a;\n") },
      "the compiler" => -> { project.script("bin/cc", "echo cc 99") },
      "an option" => -> { project.write("project/bases/small", project.read("project/bases/small").sub("configure_args=", "configure_args=--other")) },
    }.each_with_index do |(what, change), i|
      change.call
      refute_match(/built before/, build(in_project: another_clone("clone#{i}")), what)
      assert_match(/built before/, build(in_project: another_clone("again#{i}")), what)
    end
  end

  def test_a_fix_makes_another_ruby_and_another_base
    project.fix("one") { |text| text.sub("f17", "fixed") }
    [[], ["--base"]].each_with_index do |options, i|
      build(*options)
      refute_match(/built before/, build(*options, in_project: another_clone("clone#{i}"), FIXES: "one"))
      assert_match(/built before/, build(*options, in_project: another_clone("again#{i}"), FIXES: "one"))
      assert_match(/built before/, build(*options, in_project: another_clone("without#{i}")))
    end
  end

  # What is in obj can be older than what came from the cache.
  def test_objects_are_brought_up_to_date_after_a_ruby_from_the_cache
    build("--objects")
    before = `#{project.path("project/build/small/ruby")}`
    project.patch("0001-first") { |text| text.sub("f10", "first") }
    build(in_project: another_clone)
    assert_match(/built before/, build)
    after = `#{project.path("project/build/small/ruby")}`
    refute_equal before, after
    assert_equal 1, compiled
    build("--objects")
    assert_equal 2, compiled
    assert_equal after, `#{project.path("project/build/small/ruby")}`
  end

  def test_a_damaged_one_is_not_used
    build
    Dir["#{project.cache}/rubies/*"].each { |file| File.write(file, "no archive") }
    err = build(in_project: another_clone)
    assert_match(/is damaged and not used/, err)
    assert_match(/building CRuby/, err)
  end

  def test_one_that_is_used_again_is_not_the_oldest
    build
    kept = Dir["#{project.cache}/rubies/*"].first
    File.utime(0, 0, kept)
    build(in_project: another_clone)
    refute_equal Time.at(0), File.mtime(kept)
  end

  # configure leaves it out by itself where it cannot work.
  def test_a_ruby_without_the_module_is_not_built
    env = project.env(RESULT: "no: vm_trace is left out, because it needs GNU make")
    2.times do
      _, err, status = Open3.capture3(env, project.path("project/scripts/build-ruby.sh"), stdin_data: "")
      assert_equal "build-ruby.sh: this Ruby would have no vm_trace, which needs GNU make (build/small/obj/config.log)\n",
                   err.lines.last
      assert_equal [1, 0], [status.exitstatus, compiled]
    end
    build(RESULT: "yes")
    assert_equal 1, compiled
  end

  def test_the_oldest_go
    build
    kept = Dir["#{project.cache}/rubies/*"].first
    8.times { |i| FileUtils.cp(kept, "#{File.dirname(kept)}/old#{i}.tar.gz").then { File.utime(i, i, "#{File.dirname(kept)}/old#{i}.tar.gz") } }
    project.write("project/vm_trace/a.c", "int a;\n")
    build
    assert_equal 8, Dir["#{project.cache}/rubies/*"].size
    assert_path_exists kept
    refute_path_exists "#{File.dirname(kept)}/old1.tar.gz"
  end
end
