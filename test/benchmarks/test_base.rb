# The unpatched base beside the patched one: built by the same script, from a small project's own
# source.

require_relative "../build/project"

class TestBase < BuildTest
  def setup
    super
    # A "CRuby" whose configure makes a makefile, which makes a ruby that prints what zjit.c has.
    project.write("ruby/autogen.sh", "printf '#!/bin/sh\\nsed s,@src@,${0%%/*},g ${0%%/*}/template >Makefile; touch config.status\\n' >configure; chmod +x configure\n")
    project.write("ruby/template", <<~MAKE)
      all: ruby
      ruby: @src@/zjit.c
      \t{ echo '#!/bin/sh'; echo ': a ruby;' echo $$(wc -l < @src@/zjit.c) lines; } > ruby && chmod +x ruby && touch libruby-static.a
      install: ruby
      \tmkdir -p $(DESTDIR)/bin $(DESTDIR)/lib && cp ruby $(DESTDIR)/bin/ruby
    MAKE
    project.write("ruby/.gitignore", "/configure\n/revision.h\n")
    File.chmod(0o755, project.path("ruby/autogen.sh"))
    project.git("add", "-A", "-f")
    project.git("commit", "-q", "-m", "one that builds")
    base = project.read("project/bases/small").sub(/^commit=.*/, "commit=#{project.git('rev-parse', 'HEAD')}")
                  .sub(/^tree=.*/, "tree=#{project.git('rev-parse', 'HEAD^{tree}')}")
    project.instance_variable_set(:@commit, project.git("rev-parse", "HEAD"))
    project.write("project/bases/small", base)
    project.patch("0001-more") { |text| "#{text}int more(void);\n" }
  end

  def build(*args)
    out, err, status = project.run("build-ruby.sh", *args, RUBY_SOURCE: project.ruby)
    assert_equal 0, status, out + err
    err
  end

  def lines(name)
    `#{project.path("project/build/small/#{name}")}`.chomp
  end

  def test_the_base_is_built_without_the_patches_and_beside_the_other
    build
    build("--base")
    assert_equal ["21 lines", "20 lines"], [lines("ruby"), lines("base-ruby")]
    refute File.exist?(project.path("project/build/small/base-src/vm_trace"))
    assert_empty build("--base").lines.grep(/building|configuring|installing/)
    assert_equal "21 lines", lines("ruby")
  end

  def test_a_changed_patch_leaves_the_base_alone
    build("--base")
    project.patch("0002-most") { |text| "#{text}int most(void);\n" }
    assert_empty build("--base").lines.grep(/building|configuring|installing/)
    assert_equal "20 lines", lines("base-ruby")
  end

  def test_a_wrong_argument_is_refused
    _, err, status = project.run("build-ruby.sh", "--bsae")
    assert_equal 1, status
    assert_includes err, "usage: build-ruby.sh [--base]"
  end
end
