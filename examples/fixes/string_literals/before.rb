# A file without `# frozen_string_literal: true`: literals that are only read are new strings at each
# evaluation.
# Place: Headers#weight
# Subject: gc
# JIT: any

class Headers
  def weight(fields)
    sum = 0
    fields.each do |field|
      sum += 1 if field.start_with?("x-")
      sum += 2 if field.end_with?("-length")
      sum += 3 if field.include?("content")
    end
    sum
  end
end

headers = Headers.new
fields = %w[content-type content-length x-request-id accept cookie host]
sum = 0
(2_000_000 * ENV.fetch("FIXES_SCALE", "1").to_f).ceil.times { sum += headers.weight(fields) }
puts sum
