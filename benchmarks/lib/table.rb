# Rows of cells as lines of text.

module Bench
  module Table
    module_function

    # The first and the last column to the left, the others to the right.
    def lines(rows)
      widths = rows.transpose.map { |column| column.map(&:size).max }
      rows.map do |row|
        row.each_with_index.map do |cell, i|
          i == 0 || i == row.size - 1 ? cell.ljust(widths[i]) : cell.rjust(widths[i])
        end.join("  ").rstrip
      end
    end

    # 1,234,567
    def number(n)
      n.to_s.reverse.scan(/\d{1,3}/).join(",").reverse
    end
  end
end
