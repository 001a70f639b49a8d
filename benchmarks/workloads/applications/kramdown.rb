# What does a Markdown converter cost? kramdown: regular expressions, strings, a tree of elements.
require_relative "../../packages"
VMTraceBench.with_packages("kramdown", "rexml") { require "kramdown" }

TEXT = Array.new(12) do |i|
  <<~MARKDOWN
    ## Chapter #{i}

    A paragraph with *emphasis*, **more of it**, `code #{i}`, a [link](http://example.org/#{i} "title")
    and a footnote[^#{i}].

    * one
      * nested #{i}
      * and again
    * two

    1. first
    2. second

    | name | value |
    |------|------:|
    | a    | #{i}  |

    > quoted, with <b>HTML</b>

        indented code

    [^#{i}]: The note of chapter #{i}.

  MARKDOWN
end.join.freeze

VMTraceBench.iterate do
  html = Kramdown::Document.new(TEXT, auto_ids: true).to_html
  html.scan("<h2").size == 12 && html.scan("<td").size == 24 or raise html
end
