# Finds the conformance cases: those in test/conformance, and new ones in a folder beside the clone,
# if there is one.
module Conformance
  ROOT = File.expand_path("../..", __dir__)
  OURS = File.join(ROOT, "test/conformance")
  ARRIVING = ENV["CONFORMANCE"] || File.expand_path("../shared/conformance", ROOT)

  module_function

  # Paths of the cases that match the pattern. If both folders have one, only ours counts.
  def files(pattern, folders: [OURS, ARRIVING])
    folders.flat_map { |folder| Dir[pattern, base: folder].map { |name| [name, File.join(folder, name)] } }
           .reverse.to_h.sort.map(&:last)
  end

  # {case or case.question => reason} of cases that the tool does not pass yet.
  def pending
    File.readlines(File.join(OURS, "pending"), chomp: true).grep_v(/\A#/).to_h { |line| line.split(" ", 2) }
  end
end
