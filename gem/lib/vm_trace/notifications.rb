# frozen_string_literal: true

module VmTrace
  # Spans of what ActiveSupport::Notifications tells. Only what the program's source names is recorded: classes, templates, a
  # query's name, verb and table. Values of SQL, keys of caches, parameters, addresses and arguments of jobs never are.
  class Notifications
    # What a span is called, and what its arguments are when it begins and ends: each is asked with the event's payload.
    NONE = ->(_) { {} }
    Kind = Struct.new(:label, :begun, :ended)
    def self.kind(label, begun: NONE, ended: NONE) = Kind.new(label, begun, ended)
    private_class_method :kind, :new

    VERBS = %w[SELECT INSERT UPDATE DELETE WITH BEGIN COMMIT ROLLBACK SAVEPOINT RELEASE CREATE ALTER DROP EXPLAIN TRUNCATE SHOW
               SET PRAGMA CALL].to_h { |verb| [verb, verb] }.freeze
    COMMENT = %r{\A\s*(?:/\*.*?\*/\s*)*}m
    VERB = /#{COMMENT}([a-z]+)/i
    # The first table, where nothing before it can be a text: quotes come in pairs there, around names.
    TABLE = %r{#{COMMENT}(?:select\s(?:"[^"\\]*"|`[^`]*`|[^"'`/\\$\#;-])*?\sfrom|insert\s+into|update|delete\s+from)
               \s+(?:["`]?\w+["`]?\.)?["`]?(?<table>[a-z_]\w*)}xi

    class << self
      def sql_begun(payload)
        arguments = {}
        sql = payload[:sql]
        if sql.valid_encoding?
          verb = VERBS[sql[VERB, 1]&.upcase] and arguments[:verb] = verb
          table = sql[TABLE, :table] and arguments[:table] = table
        end
        arguments[:cached] = true if payload[:cached]
        arguments[:async] = true if payload[:async]
        arguments
      end

      # The path of a template below app/views, or below the root of the application.
      def template(path)
        @templates ||= {}
        @templates[path] ||= path.to_s.sub(%r{\A.*/app/views/}, "").delete_prefix("#{::Rails.root if defined?(::Rails.root)}/")
      end

      def job(payload) = payload[:job].class.name

      def job_begun(payload)
        job = payload[:job]
        { queue: job.queue_name, job_id: job.job_id, **VmTrace.telemetry }
      end
    end

    VIEW = { ended: ->(payload) { { count: payload[:count], cache_hits: payload[:cache_hits] }.compact } }.freeze
    HIT = ->(payload) { payload.key?(:hit) ? { hit: payload[:hit] ? true : false } : {} }

    KINDS = {
      requests: {
        "process_action.action_controller" =>
          kind(->(payload) { "#{payload[:controller]}##{payload[:action]}" },
               begun: lambda do |payload|
                 arguments = { method: payload[:method], **VmTrace.telemetry }
                 request = payload[:request] or next arguments
                 request.env[Requests::TRACE_ID] ||= arguments[:trace_id] if arguments[:trace_id]
                 { **arguments, request_id: request.request_id }
               end,
               ended: ->(payload) { { status: payload[:status] } }),
      },
      sql: {
        "sql.active_record" =>
          kind(->(payload) { payload[:name] || "SQL" }, begun: method(:sql_begun),
               ended: ->(payload) { { rows: payload[:row_count] }.compact }),
        "instantiation.active_record" =>
          kind(->(payload) { "instantiate #{payload[:class_name]}" }, begun: ->(payload) { { rows: payload[:record_count] } }),
      }, # no transaction.active_record: it begins within the first query, and ends after it
      views: %w[template partial collection layout].to_h do |what|
        ["render_#{what}.action_view", kind(->(payload) { "render #{template(payload[:identifier])}" }, **VIEW)]
      end,
      cache: %w[read read_multi write write_multi increment decrement delete delete_multi delete_matched exist? generate fetch_hit
                prune cleanup].to_h do |what|
        ["cache_#{what}.active_support",
         kind(->(_) { "cache #{what}" }, begun: ->(payload) { { store: payload[:store] } }, ended: HIT)]
      end,
      jobs: {
        "perform.active_job" =>
          kind(method(:job), begun: lambda do |payload|
            { endpoint: job(payload), attempt: payload[:job].executions + 1, **job_begun(payload) }
          end),
        **{ "enqueue" => "enqueue", "enqueue_at" => "enqueue", "enqueue_retry" => "retry", "discard" => "discard" }.to_h do |name, verb|
          ["#{name}.active_job", kind(->(payload) { "#{verb} #{job(payload)}" }, begun: method(:job_begun))]
        end,
      },
      mail: {
        "process.action_mailer" => kind(->(payload) { "#{payload[:mailer]}##{payload[:action]}" }),
        "deliver.action_mailer" => kind(->(payload) { "deliver #{payload[:mailer]}" }),
      },
      cable: {
        "perform_action.action_cable" => kind(->(payload) { "#{payload[:channel_class]}##{payload[:action]}" }),
        "transmit.action_cable" => kind(->(payload) { "transmit #{payload[:channel_class]}" }),
        "broadcast.action_cable" => kind(->(_) { "broadcast" }),
      },
      storage: %w[upload download streaming_download download_chunk delete delete_prefixed exist url mirror].to_h do |what|
        ["service_#{what}.active_storage",
         kind(->(_) { "storage #{what}" }, begun: ->(payload) { { service: payload[:service] } })]
      end,
    }.freeze

    @subscribed = {}

    # Spans of these kinds, from now on; once is enough. Without ActiveSupport there is nothing to subscribe to.
    def self.subscribe(kinds = KINDS.keys)
      return unless VmTrace.available? && defined?(ActiveSupport::Notifications)
      unknown = kinds - KINDS.keys
      raise ArgumentError, "there are no spans #{unknown.inspect}; there are #{KINDS.keys.inspect}" if unknown.any?
      kinds.each do |group|
        KINDS[group].each do |name, kind|
          @subscribed[name] ||= ActiveSupport::Notifications.subscribe(name, new(kind))
        end
      end
    end

    def self.subscribed?(event) = @subscribed.key?(event)

    def initialize(kind)
      @label, @begun, @ended = *kind
    end

    def start(_event, _id, payload)
      return unless RubyVM::Trace.markers?
      VmTrace.guard { Spans.open(payload, @label.call(payload), **@begun.call(payload)) }
    end

    # The payload is the same object as at the start.
    def finish(_event, _id, payload)
      return unless RubyVM::Trace.markers?
      arguments = {}
      VmTrace.guard do
        error = payload[:exception]&.first and arguments[:error] = error
        arguments.update(@ended.call(payload))
      end
      VmTrace.guard { Spans.close(payload, **arguments) }
    end

    # A query of load_async: another thread has run it, and this one tells of it afterwards.
    def publish_event(event)
      return unless RubyVM::Trace.markers?
      VmTrace.guard do
        RubyVM::Trace.instant(@label.call(event.payload), ms: event.duration.to_f, **@begun.call(event.payload))
      end
    end
  end
end
