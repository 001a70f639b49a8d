# What the order by count suggests: no `return` out of a block in Mustache::Context#fetch.
require_relative "../before/page"

class Mustache::Context
  def fetch(name, default = :__raise)
    found = @stack.find { |frame| find(frame, name, :__missing) != :__missing }
    return find(found, name, :__missing) if found
    return default unless default == :__raise || mustache_in_stack.raise_on_context_miss?
    raise Mustache::ContextMiss, "Can't find #{name} in #{@stack.inspect}"
  end
end
