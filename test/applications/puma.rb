# Puma's settings for all applications that it serves. The environment says what differs.
threads 3, 3
workers ENV.fetch("WORKERS", "0").to_i
preload_app! ENV["PRELOAD"] == "1" # false with phased restarts
environment ENV.fetch("RAILS_ENV", "production")
state_path "puma.state"
bind "tcp://127.0.0.1:#{ENV.fetch("PORT")}"
plugin :solid_queue if ENV["JOBS"] == "1"
stdout_redirect nil, nil
silence_single_worker_warning
