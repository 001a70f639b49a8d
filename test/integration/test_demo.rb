# The demo's program leaves compiled code in several ways on every base, under the JIT that `make
# demo` takes there.
require_relative "helper"

class TestDemo < Integration::Test
  def test_the_demo_exits_in_several_methods_again_and_again
    result = trace(File.read(File.join(Integration::ROOT, "examples/demo.rb")), name: "demo.rb")
    assert_match(/\AThe ledger's sum is \d+\.\n\z/, result.out)
    by_method = result.trace.exits.map { |event| event["args"]["0"] }.tally
    assert_operator by_method.count { |_, exits| exits >= 5_000 }, :>=, 3, by_method
  end
end
