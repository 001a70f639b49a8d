# frozen_string_literal: true

require_relative "lib/vm_trace/version"

Gem::Specification.new do |spec|
  spec.name = "vm_trace"
  spec.version = VmTrace::VERSION
  spec.summary = "Requests, queries, views and jobs in the traces of a Ruby with vm_trace's patches"
  spec.description = "Marks what a Rails, Rack, Sidekiq or GraphQL application does in the traces of a patched CRuby, and saves a " \
                     "trace of each slow request. On another Ruby it does nothing."
  spec.authors = ["the authors of ruby-vm-trace"]
  spec.licenses = ["Ruby", "BSD-2-Clause"]
  spec.required_ruby_version = ">= 3.1"
  spec.files = Dir.glob(%w[lib/**/*.rb README.md LICENSE], base: __dir__)
  spec.metadata = { "rubygems_mfa_required" => "true" }
end
