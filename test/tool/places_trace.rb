# A trace with exits at many different places, each with a long name and two callers: for the budgets of the page of
# `vm-trace html`, in a test and in `make bench-tool`.
require_relative "fxt_builder"

module PlacesTrace
  INSNS = %w[send opt_plus getivar opt_aref].freeze

  def self.frame(i)
    path = "/srv/app/releases/current/app/models/part#{i % 2000}.rb"
    FxtBuilder::Inline.new("Module#{i % 700}::Class#{i % 5000}#method_#{i} (#{path}:#{1 + i % 400})")
  end

  # Each place has an exit; the other events are at few of them.
  def self.build(places: 100_000, events: 150_000, span_ns: 20_000_000_000)
    random = Random.new(1)
    frames = Array.new(places) { |i| frame(i) }
    FxtBuilder.simple do |b|
      events.times do |i|
        place = i < places ? i : (random.rand**3 * places).to_i
        b.event(:instant, "side_exit", "Reason#{place % 40}", ts: 1000 + i * span_ns / events,
                args: { "0" => frames[place], "1" => frames[place * 7 % places], "2" => "<main> (/srv/app/run.rb:1)",
                        "insn" => INSNS[place % 4] })
      end
    end
  end
end
