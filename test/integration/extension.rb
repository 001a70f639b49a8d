# Extensions in C for tests, built with the patched Ruby.
require_relative "helper"
require "open3"

module Extension
  # The path of NAME.so, made of `files` ({ name => text }) once a run.
  def self.build(name, files)
    (@built ||= {})[name] ||= begin
      dir = Dir.mktmpdir("vm-trace-ext-")
      Minitest.after_run { FileUtils.rm_rf(dir) }
      files = { "extconf.rb" => "require 'mkmf'; create_makefile('#{name}')" }.merge(files)
      files.each { |file, text| File.write(File.join(dir, file), text) }
      [[Integration::RUBY, "extconf.rb"], %w[make]].each do |command|
        out, status = Open3.capture2e(Integration::ENVIRONMENT, *command, chdir: dir)
        raise out unless status.success?
      end
      File.join(dir, "#{name}.so")
    end
  end
end
