# What does an XML parser in Ruby cost? REXML builds a tree, answers XPath, and streams.
require_relative "../../packages"
VMTraceBench.with_packages("rexml") do
  require "rexml/document"
  require "rexml/streamlistener"
end

ITEMS = Array.new(120) { |i| %(<item id="#{i}" kind="k#{i % 3}"><name>thing &amp; #{i}</name><!-- #{i} --></item>) }
XML = "<?xml version='1.0'?><list>#{ITEMS.join("\n")}</list>".freeze

class Counter
  include REXML::StreamListener
  attr_reader :tags

  def initialize = @tags = 0
  def tag_start(_name, _attributes) = @tags += 1
end

VMTraceBench.iterate do
  document = REXML::Document.new(XML)
  REXML::XPath.match(document, "//item[@kind='k1']/name").size == 40 or raise
  counter = Counter.new
  REXML::Document.parse_stream(XML, counter)
  counter.tags == 241 or raise counter.tags.to_s
end
