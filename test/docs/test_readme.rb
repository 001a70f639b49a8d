# Every command of the README is run as it stands, in this clone; what can't be run inside a test is
# named with the reason.
require "minitest/autorun"
require "fileutils"
require "open3"

class TestReadme < Minitest::Test
  TOP = File.expand_path("../..", __dir__)
  README = File.read(File.join(TOP, "README.md"))
  COMMANDS = README.scan(/^```sh\n(.*?)^```/m).flat_map { |(block)| block.lines.map(&:strip) }

  # So many lines are what a reader sees first.
  SCREEN = 40

  COMMANDS.uniq.each_with_index do |command, i|
    define_method "test_command_#{i}_#{command[/\A[^|"]{1,50}/].gsub(/\W+/, "_")}_succeeds" do
      skip ENV["NO_RUBY"] if ENV["NO_RUBY"] && command.match?(/ruby|demo|\.fxt|patch-file/)
      ready(command)
      out, status = Open3.capture2e(command, chdir: TOP)
      assert status.success?, "#{command}\n#{out}"
      written = command[/ -o (\S+)/, 1]&.then { |path| File.join(TOP, path) }
      refute_empty !written ? out : File.directory?(written) ? Dir.children(written) : File.read(written)
    end
  end

  def test_the_report_shown_is_that_of_the_demo
    skip ENV["NO_RUBY"] if ENV["NO_RUBY"]
    expected = rows(README[/^What to change first.*?\n(.*?)^\.\.\.$/m, 1])
    assert_operator expected.size, :>, 3
    reported = nil
    TIMER_TRIES.times do
      reported = demo_rows.first(expected.size)
      break if reported == expected
    end
    assert_equal expected, reported
  end

  def test_flags_of_the_guide_are_those_of_help
    skip ENV["NO_RUBY"] if ENV["NO_RUBY"]
    help, = Open3.capture2e(File.join(TOP, "build/#{ENV.fetch("BASE", "ruby-4.0")}/ruby"), "--help")
    table = File.read(File.join(TOP, "doc/guide/tracing.md")).scan(/`(--zjit-trace-[a-z-]+)/).flatten.uniq.sort
    assert_equal help.scan(/--zjit-trace-[a-z-]+/).uniq.sort, table
  end

  def test_packages_are_those_that_make_installs
    deps = File.read(File.join(TOP, "scripts/deps.sh")).scan(/\|\| echo ([a-z0-9-]+)/).flatten.uniq.sort
    page = File.read(File.join(TOP, "doc/guide/install.md"))
    shown = page[/^apt-get install --no-install-recommends (.*)$/, 1].split.sort
    assert_equal deps, shown
  end

  # Who works on ZJIT and who has a Rails application find their first command at once, and it is one.
  def test_the_first_screen_has_a_command_for_each_reader
    rows = README.lines.first(SCREEN).grep(/^\|/).to_h { |row| row.split("|")[1, 2].map(&:strip) }
    zjit = rows.fetch("work on ZJIT")[/`(make [^`]+)`/, 1]
    out, status = Open3.capture2e("#{zjit} --dry-run", chdir: TOP)
    assert_predicate status, :success?, out
    assert_match %r{^build/ruby-4\.1/ruby --zjit .*--zjit-trace-exits}, out.lines.grep(/demo\.rb/).join
    rails = rows.fetch("have a Rails application")
    assert_match(/^patch-file:/, File.read(File.join(TOP, "Makefile.in")))
    assert_includes rails, "`make patch-file` and `rbenv install --patch`"
    assert_match(/rbenv install --patch \S+ < build\/ruby-\S+-vm_trace\.patch$/, README)
  end

  def test_links_lead_to_files
    README.scan(/\]\((?!http)([^)#]+)/).flatten.each do |link|
      assert_path_exists File.join(TOP, link)
    end
  end

  def test_it_is_short
    assert_operator README.lines.size, :<=, 100
  end

  def test_pictures_are_shown_and_small
    shown = Dir.glob("{README.md,doc/**/*.md}", base: TOP).flat_map do |page|
      pictures = File.read(File.join(TOP, page)).scan(/!\[[^\]]+\]\(([^)]+)\)/).flatten
      pictures.map { |picture| File.expand_path(picture, File.join(TOP, File.dirname(page))) }
    end
    assert_equal Dir.glob(File.join(TOP, "doc/pictures/*")).sort, shown.uniq.sort
    shown.each { |picture| assert_operator File.size(picture), :<, 200_000, picture }
  end

  private

  # A timer's interrupts are exits, too. A reason that occurs in two places, as theirs may on a slow
  # machine, makes the report show reasons and places in tables of their own; then the demo runs again.
  TIMER_TRIES = 10

  def demo_rows
    out, status = Open3.capture2e("make", "demo", chdir: TOP)
    assert status.success?, out
    command = README[/^\$ (build\/tool\/vm-trace report .*)$/, 1]
    out, = Open3.capture2e(command, chdir: TOP)
    rows(out[/^What to change first.*?\n(.*)/m, 1])
  end

  # A timer adds a few exits to those that the program makes.
  def rows(text) = text.lines(chomp: true).map { |line| line.gsub(/6,0\d\d/, "6,0nn") }

  # The trace that the commands read, when the test that makes it has not been run yet (their order
  # is random).
  # A recording goes into a new folder, and the page is made of one.
  def ready(command)
    recording = COMMANDS.find { |other| other.include?("record -o build/mine ") }
    FileUtils.rm_rf(File.join(TOP, "build/mine")) if command == recording
    return unless command.end_with?(" build/mine") && !File.exist?(File.join(TOP, "build/mine"))
    out, status = Open3.capture2e(recording, chdir: TOP)
    assert status.success?, out
  end
end
