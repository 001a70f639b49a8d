# Pairs of programs, before and after a fix: examples/fixes/NAME/before.rb and after.rb. Both print the same value.
# The comment at the head of before.rb tells the situation, and has these lines:
#   Place: Owner#method[, Owner#method]   what the report should name, any of these; none if nothing can be gained
#   Subject: one of SUBJECTS              as what
#   JIT: yjit, zjit, both, or any
#   Needs: a library that Ruby may lack   only if there is one

require_relative "side"

module Bench
  class Fix
    FOLDER = File.expand_path("../../examples/fixes", __dir__)
    SUBJECTS = %w[exits interpreted compiling gc gvl blocked method].freeze
    KEY = /\A# (Place|Subject|JIT|Needs): (.+)\n/

    attr_reader :name

    # All, or those with these names.
    def self.find(names, folder = FOLDER)
      all = Dir["#{folder}/*/before.rb"].sort.map { |path| new(File.dirname(path)) }
      wrong = (names - all.map(&:name)).first and
        raise BadArgument, "#{wrong}: no such pair; there are: #{all.map(&:name).join(" ")}"
      names.empty? ? all : all.select { |fix| names.include?(fix.name) }
    end

    def initialize(folder)
      @folder, @name = folder, File.basename(folder)
    end

    # version: "before" or "after"
    def path(version) = "#{@folder}/#{version}.rb"

    def situation(version = "before")
      head(version).grep_v(KEY).grep_v(/\A# frozen_string_literal:/).map { |line| line[1..].strip }.join(" ")
    end

    def places = keys["Place"].to_s.split(/, */) - ["none"]
    def subject = keys["Subject"]
    def needs = keys["Needs"]
    def jits = keys["JIT"].to_s.split
    def with?(jit) = !(jits & ["any", jit.to_s]).empty?

    # Whether a finding names one of ours, as "block in Owner#method (path:line)" does. A thread's has it in its cause,
    # as has the method that calls a library.
    def in?(place, cause)
      place = place.sub(/\A(block|rescue|ensure)( \(.*?\))? in /, "").sub(/ \(.*\)\z/, "")
      places.include?(place) || places.any? { |name| cause.match?(/ #{Regexp.escape(name)}(?: \(|\z|;)/) }
    end

    private

    def head(version) = File.foreach(path(version)).take_while { |line| line.start_with?("#") }

    def keys = @keys ||= head("before").filter_map { |line| line.match(KEY)&.captures }.to_h
  end
end
