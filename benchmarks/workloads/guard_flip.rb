# What does an exit cost where a guarded class changes with every second call? Two exits for each pair of calls, for ever.
require_relative "../inside"

def title(name)
  "the #{name}"
end

def split(pair)
  left, right = pair
  right || left
end

# Compiled for strings and for arrays.
60.times do
  title("first")
  split([1, 2])
end

PAIR = [1, 2].freeze

def flip(n)
  i = 0
  while i < n
    title(i.even? ? :symbol : "string")
    split(i.even? ? 1 : PAIR)
    i += 1
  end
end

40.times { flip(6) }
VMTraceBench.iterate { flip(50_000) }
