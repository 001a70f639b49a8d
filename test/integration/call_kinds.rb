# What a call of a trace is, by its name, in the words of TracePoint's events.
module CallKinds
  NO_EVENT = /\A(?:rescue|ensure) in |\A<main>|\A<top/

  # nil: TracePoint has no event for it.
  def call_kind(name)
    case name
    when NO_EVENT then nil
    when /\Ablock / then "block"
    when /\A<(?:class|module):/ then "class"
    when /\Asingleton class/ then "singleton class" # no event since Ruby 3.4
    else "call"
    end
  end
end
