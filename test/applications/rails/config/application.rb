# A Rails application with what most have: Active Record, views, JSON, jobs in Solid Queue, Bootsnap, and Zeitwerk for what is
# in app/. What differs between runs is in the environment: RAILS_ENV, and LATE_YJIT=1 has Rails turn YJIT on.
ENV["BUNDLE_GEMFILE"] ||= File.expand_path("../Gemfile", __dir__)
require "bundler/setup"
require "bootsnap"
Bootsnap.setup(cache_dir: File.expand_path("../tmp/cache", __dir__), development_mode: false)

require "rails"
%w[active_record active_job action_controller action_view].each { |part| require "#{part}/railtie" }
require "action_cable/engine"
require "solid_queue"

module Notes
  class Application < Rails::Application
    config.load_defaults 8.1
    config.root = File.expand_path("..", __dir__)
    config.yjit = ENV["LATE_YJIT"] == "1"
    config.eager_load = Rails.env.production?
    config.secret_key_base = "0" * 64
    config.consider_all_requests_local = false
    config.logger = Logger.new("log.txt")
    config.log_level = :info
    config.hosts.clear
    config.active_job.queue_adapter = :solid_queue
    config.solid_queue.logger = config.logger
    config.action_cable.disable_request_forgery_protection = true
    config.action_cable.cable = { "adapter" => "async" }
    config.action_cable.mount_path = "/cable"
  end
end
