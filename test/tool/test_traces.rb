# The traces in test/traces/: what check says of them, and the whole screen that summary prints, against kept text.
# UPDATE=1 writes that text again; read the difference before it is committed.
require_relative "tool_helper"
require_relative "../traces/make"

class TestTraces < Minitest::Test
  include ToolHelper

  def test_files_are_what_make_rb_makes
    Traces.all.each do |name|
      assert_equal Traces.public_send(name).bytes, File.binread(File.join(TRACES, "#{name}.fxt")), "run test/traces/make.rb"
    end
  end

  def test_summaries
    Traces.all.each do |name|
      text = Dir.chdir(TRACES) { tool("summary", "#{name}.fxt").out }
      kept = File.join(TRACES, "#{name}.summary.txt")
      File.write(kept, text) if ENV["UPDATE"]
      assert_equal File.read(kept), text, name.to_s
    end
  end

  def test_check_finds_no_fault
    Traces.all.each do |name|
      result = tool("check", File.join(TRACES, "#{name}.fxt"))
      assert_equal 0, result.status, result.err
    end
  end
end
