# frozen_string_literal: true

module VmTrace
  VERSION = "0.2" # that of configure.ac
end
