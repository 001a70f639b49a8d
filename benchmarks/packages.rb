# Libraries in pure Ruby from the distribution's packages, for workloads. Like inside.rb it runs in the
# measured process, in any Ruby.

require "tmpdir"
require_relative "inside"

module VMTraceBench
  module Packages
    GEMS = %w[/usr/share/rubygems-integration/all/gems /usr/lib/ruby/gems/*/gems].freeze
    VENDOR = "/usr/lib/ruby/vendor_ruby"
    LIBRARY = "/usr/lib/ruby/[0-9]*.[0-9]*.0"
    # Parts of the standard library that newer Rubies have as gems. The distribution's Ruby has them.
    MOVED = %w[abbrev base64 benchmark cgi csv drb getoptlong logger mutex_m observer ostruct pstore].freeze
    # Gems that come with the distribution's Ruby.
    WITH_RUBY = %w[net-imap net-pop net-smtp rexml].freeze

    module_function

    # The folder for the load path of a package that is a gem. nil if there is none.
    def folder(name)
      GEMS.flat_map { |gems| Dir["#{gems}/#{name}-[0-9]*/lib"] }.max
    end

    # What `require name` loads from a folder.
    def files(name, folder)
      Dir["#{folder}/#{name}{.rb,}"]
    end

    # Of MOVED, the files that Ruby lacks whose library is in `own`.
    def moved(own, distribution)
      MOVED.reject { |name| File.exist?("#{own}/#{name}.rb") }.flat_map { |name| files(name, distribution) }
    end

    def link(files, into)
      files.each { |file| File.symlink(file, "#{into}/#{File.basename(file)}") }
      into
    end

    def debian(name)
      WITH_RUBY.include?(name) ? "ruby" : "ruby-#{name.tr('_', '-')}"
    end
  end

  # Makes these packages available to the block, which requires them. The process ends, and the workload
  # counts as not run, if one is not installed or is too old for this Ruby.
  def self.with_packages(*names)
    gems, others = names.partition { |name| Packages.folder(name) }
    links = others.to_h { |name| [name, Packages.files(name, Packages::VENDOR)] }
    missing = links.select { |_, files| files.empty? }.keys.map { |name| Packages.debian(name) }.uniq
    not_run("it needs #{missing.join(' and ')} (Debian: apt-get install #{missing.join(' ')})") unless missing.empty?
    $LOAD_PATH.unshift(*gems.map { |name| Packages.folder(name) })
    # Last, and not the distribution's own folders: those would hide this Ruby's library.
    library = Dir[Packages::LIBRARY].max
    $LOAD_PATH.push(linked([*Packages.moved(RbConfig::CONFIG["rubylibdir"], library), *links.values.flatten]))
    yield
  rescue LoadError, FrozenError, NameError => e
    what = names.empty? ? "it" : "#{names.join(', ')} of this distribution"
    not_run("#{what} cannot run in Ruby #{RUBY_VERSION}: #{e.message.lines.first.strip}")
  end

  def self.linked(files)
    folder = Dir.mktmpdir("vm-trace-bench")
    at_exit { Dir.children(folder).each { |name| File.unlink("#{folder}/#{name}") }.then { Dir.rmdir(folder) } }
    Packages.link(files, folder)
  end

  def self.not_run(reason)
    abort "not run: #{reason}" unless REPORT
    report("not_run", reason)
    exit
  end
  private_class_method :linked, :not_run
end
