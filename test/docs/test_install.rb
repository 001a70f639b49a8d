# doc/guide/install.md and examples/Dockerfile: the names in them are those that are made. No
# installer and no Docker runs here; test/build/test_patch_file.rb and
# test/integration/test_packages.rb try what they do.
require "minitest/autorun"
require "open3"

class TestInstall < Minitest::Test
  TOP = File.expand_path("../..", __dir__)
  DOCKERFILE = File.read("#{TOP}/examples/Dockerfile")
  PAGES = %w[README.md doc/guide/install.md].freeze

  def test_named_patch_files_are_made
    named = PAGES.flat_map { |page| File.read("#{TOP}/#{page}").scan(/ruby-[\w.-]+-vm_trace\.patch/) }.uniq.sort
    out, status = Open3.capture2e("#{TOP}/scripts/patch-file.sh", *Dir.children("#{TOP}/bases"))
    skip "a source is missing" if status.exitstatus == 3 || out.include?("was not found")
    assert_predicate status, :success?, out
    made = out.scan(%r{^patch-file: build/(\S+)}).flatten
    assert_empty named - made
    assert_empty made - File.read("#{TOP}/doc/guide/install.md").scan(/ruby-[\w.-]+-vm_trace\.patch/)
  end

  def test_named_packages_are_those_of_the_bases
    named = File.read("#{TOP}/doc/guide/install.md").scan(/\bruby\d\.\d-vm-trace/).uniq
    assert_equal Dir.children("#{TOP}/bases").map { |base| "#{base.delete("-")}-vm-trace" }.sort, named.sort
  end

  # With DEPS=no the build stops where one is missing.
  def test_the_dockerfile_installs_what_the_build_needs
    packages = DOCKERFILE[/^RUN apt-get update && apt-get install -y --no-install-recommends (.*?)\n(?=\S)/m, 1]
    installed = packages.split.grep_v("\\")
    needed = File.read("#{TOP}/scripts/deps.sh").scan(/\|\| echo ([a-z0-9-]+)/).flatten.uniq
    assert_equal (needed + %w[dpkg-dev rustc]).sort, installed.sort
  end

  def test_the_dockerfile_builds_a_goal_and_a_base_that_exist
    assert_includes Dir.children("#{TOP}/bases"), DOCKERFILE[/^ARG BASE=(.*)/, 1]
    assert_match(/^RUN make deb BASE=\$BASE DEPS=no$/, DOCKERFILE)
    assert_match(/^deb:/, File.read("#{TOP}/Makefile.in"))
    assert_includes DOCKERFILE, "COPY --from=build /src/build/deb/"
    assert_includes File.read("#{TOP}/scripts/deb.sh"), "out=$top/build/deb"
  end
end
