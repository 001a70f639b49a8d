# The environment of a program that uses the gems of an application of test/applications, as scripts/gems.sh
# installed them into a folder, and nothing of the user's settings.

module Bench
  module GemEnvironment
    module_function

    def of(ruby, gemfile, gems)
      { "PATH" => "#{File.dirname(File.realpath(ruby))}:#{ENV["PATH"]}", "BUNDLE_GEMFILE" => gemfile,
        "BUNDLE_PATH" => gems, "BUNDLE_USER_HOME" => "#{gems}/bundle", "BUNDLE_IGNORE_CONFIG" => "1",
        "BUNDLE_FROZEN" => "true", "BUNDLE_VERSION" => "system",
        "RUBYOPT" => nil, "RUBYLIB" => nil, "RUBY_VM_TRACE" => nil }
    end
  end
end
