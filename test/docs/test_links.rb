# Links and paths: what any document links to exists, headings included, and so does every document
# that any file names.
require "minitest/autorun"

class TestLinks < Minitest::Test
  TOP = File.expand_path("../..", __dir__)
  LISTED = IO.popen(%w[git ls-files -z], chdir: TOP, &:read).split("\0")
  FILES = LISTED.select { |file| File.file?(File.join(TOP, file)) }
  PAGES = FILES.grep(/\.md\z/).reject { |file| file.start_with?("test/traces/") }
  FOLDERS = %w[doc/guide doc/internals].freeze

  def self.text(file) = File.read(File.join(TOP, file), encoding: "UTF-8")

  def self.prose(page) = text(page).gsub(/^```.*?^```/m, "")

  # GitHub's rule for the anchor of a heading.
  def self.anchors(page)
    prose(page).scan(/^#+ +(.*)$/).map { |(title)| title.downcase.gsub(/[^\p{Word}\- ]/, "").tr(" ", "-") }
  end

  PAGES.each do |page|
    define_method "test_links_of_#{page.gsub(/\W/, "_")}" do
      self.class.prose(page).scan(/\]\((?!https?:)([^)\s#]*)(?:#([^)\s]+))?\)/) do |path, anchor|
        target = path.empty? ? page : File.join(File.dirname(page), path).sub(%r{\A\./}, "")
        target = File.expand_path(target, "/")[1..]
        assert_path_exists File.join(TOP, target), "#{page} links to #{path}"
        assert_includes self.class.anchors(target), anchor, "#{page}: #{path}##{anchor}" if anchor
      end
    end
  end

  # Comments, messages, help: a document that moved is looked for where they say that it is.
  def test_documents_that_files_name_exist
    named = (FILES - PAGES).flat_map do |file|
      self.class.text(file).scrub.scan(%r{(?<![\w./-])doc/[\w./-]+\.md}).map { |path| [file, path] }
    end
    refute_empty named
    gone = named.reject { |file, path| file.start_with?("patches/") || File.exist?(File.join(TOP, path)) }
    assert_empty gone.map { |file, path| "#{file}: #{path}" }
  end

  def test_each_guide_lists_all_its_pages
    FOLDERS.each do |folder|
      pages = Dir.children(File.join(TOP, folder)).grep(/\.md\z/) - ["README.md"]
      listed = self.class.text("#{folder}/README.md").scan(/\]\(([\w.-]+\.md)/).flatten.uniq
      assert_equal pages.sort, (listed & pages).sort, folder
    end
  end
end
