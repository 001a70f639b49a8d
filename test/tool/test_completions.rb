# The completions of bash and zsh: they parse, and offer what --help lists.
require_relative "tool_helper"
require "io/console"
require "pty"
require "timeout"

class TestCompletions < Minitest::Test
  include ToolHelper

  FOLDER = File.join(ROOT, "tools/vm-trace/cli/completions")
  COMMANDS = Open3.capture2(TOOL, "--help").first[/^Commands:\n(.*?)\n\n/m, 1].lines.map { |line| line.split.first }

  def options_of(command) = tool(command, "--help").out[/^Options:\n(.*?)\n\n/m, 1].scan(/^  (?:-., |    )(--[a-z-]+=?)/).flatten

  def program(name)
    skip "no #{name} here" unless ENV["PATH"].split(":").any? { |dir| File.executable?(File.join(dir, name)) }
  end

  # The completions of bash for these words.
  def in_bash(*words)
    script = <<~BASH
      source "$1"
      shift
      COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
      _vm_trace "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
      printf '%s\\n' "${COMPREPLY[@]}"
    BASH
    bash = [{ "LC_ALL" => "C.UTF-8" }, "bash", "-c", script, "bash"] # without the locale it may warn
    out, err, status = Open3.capture3(*bash, File.join(FOLDER, "vm-trace.bash"), TOOL, *words)
    assert_equal ["", true], [err, status.success?]
    out.split("\n")
  end

  def test_bash_offers_every_command
    program("bash")
    assert_operator COMMANDS.size, :>, 5
    assert_equal COMMANDS + %w[help --help --version], in_bash("")
    assert_equal COMMANDS, in_bash("help", "")
    assert_equal %w[dump diff].sort, in_bash("d").sort
  end

  def test_bash_offers_every_option_of_every_command
    program("bash")
    COMMANDS.each do |command|
      options = options_of(command)
      assert_includes options, "--help"
      assert_equal options, in_bash(command, "--"), command
      assert_includes in_bash(command, "file", "--he"), "--help"
    end
  end

  def test_bash_offers_what_an_option_takes
    program("bash")
    assert_equal %w[csv table json], in_bash("query", "--format", "=")
    assert_equal %w[json], in_bash("query", "--format", "=", "js")
    assert_equal %w[folded speedscope chrome firefox pprof sqlite], in_bash("export", "x.fxt", "--format", "")
    assert_equal %w[exits], in_bash("export", "--kind", "=", "e")
    assert_equal %w[blocked], in_bash("export", "--kind", "=", "b")
    assert_equal %w[sum events lost], in_bash("export", "--weight", "=", "")
  end

  def test_bash_leaves_files_to_bash
    program("bash")
    assert_empty in_bash("report", "")
    assert_empty in_bash("html", "--output", "=", "x")
  end

  # Types lines into an interactive zsh, requests completions of each, and returns what the screen shows then.
  def in_zsh(*lines)
    Dir.mktmpdir do |dir|
      File.symlink(TOOL, File.join(dir, "vm-trace"))
      environment = { "TERM" => "dumb", "HOME" => dir, "ZDOTDIR" => dir, "PATH" => "#{dir}:#{ENV["PATH"]}", "COLUMNS" => "200", "LC_ALL" => "C.UTF-8" }
      PTY.spawn(environment, "zsh", "-f", "-i") do |out, input, pid|
        out.winsize = [200, 200]
        read_to = lambda do |pattern|
          shown = +""
          Timeout.timeout(30) { shown << out.readpartial(4096) until shown.match?(pattern) }
          shown
        rescue Timeout::Error
          flunk "zsh did not show #{pattern.inspect}: #{shown}"
        end
        input.puts "bindkey -e; bindkey '^T' list-choices; fpath=(#{FOLDER} $fpath); autoload -Uz compinit; compinit -u -D; " \
                   "unset zle_bracketed_paste; zstyle ':completion:*' verbose no; LISTMAX=0 PS1='a''sk> '"
        read_to[/ask> /]
        shown = lines.each_with_index.map do |line, i|
          input.write "#{line}\x14"
          input.write "\x15echo do''ne #{i}.\n"
          read_to[/done #{i}\.[^\n]*\n.*ask> /m]
        end
        Process.kill(:KILL, pid)
        return shown
      end
    end
  end

  def test_zsh_offers_every_command_and_option
    program("zsh")
    assert_empty Open3.capture2e("zsh", "-n", File.join(FOLDER, "_vm-trace")).first
    offered, *options = in_zsh("vm-trace ", *COMMANDS.map { |command| "vm-trace #{command} --" })
    COMMANDS.each { |command| assert_match(/(^|\s)#{command}\s/, offered) }
    COMMANDS.zip(options) do |command, shown|
      options_of(command).each { |option| assert_match(/(^|\s)#{option.delete("=")}\b/, shown, command) }
    end
  end

  def test_zsh_offers_what_an_option_takes
    program("zsh")
    formats, kinds = in_zsh("vm-trace query --format=", "vm-trace export --kind=")
    assert_match(/csv\s+json\s+table/, formats)
    assert_match(/exits\s+fallbacks/, kinds)
  end
end
