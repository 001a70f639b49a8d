# Formats log entries of twenty kinds. Only one kind has come when the method is compiled, so ZJIT has no profile of the others.
class Entry
  def initialize(kind, value) = (@kind, @value = kind, value)

  KINDS = %w[started stopped loaded saved opened closed read written sent received queued taken locked freed added removed renamed copied failed].freeze

  class_eval <<~RUBY
    def text
      case @kind
      #{KINDS.map { |kind| "when :#{kind} then \"#{kind} \" + @value.to_s" }.join("\n  ")}
      else ""
      end
    end
  RUBY
end

idle = Entry.new(:idle, 0)
100.times { idle.text }
entries = Entry::KINDS.map { |kind| Entry.new(kind.to_sym, 42) }
200.times { entries.each(&:text) }
