require "sidekiq"

REDIS = { url: "redis://127.0.0.1:#{ENV.fetch("REDIS_PORT")}" }.freeze
Sidekiq.configure_server { |config| config.redis = REDIS }
Sidekiq.configure_client { |config| config.redis = REDIS }

# Its result is in a file of its own.
class Count
  include Sidekiq::Job
  sidekiq_options retry: false

  def perform(number, words)
    raise ArgumentError, "broken on purpose" if number == 7
    File.write("results/#{number}", words.map { |word| word.upcase.tr("AEIOU", "*") * number }.tally.to_a.inspect)
  end
end
