# Drawings, by gnuplot. Each method returns nil, or why there is no drawing.

require "open3"

module Bench
  module Plot
    module_function

    # One line for each workload: the ratio and its interval. entries: [[name, Interval]]
    def ratios(file, entries)
      return "nothing was compared" if entries.empty?
      data = entries.each_with_index.map do |(_, i), at|
        [i.ratio, i.low, i.high.infinite? ? i.ratio : i.high, entries.size - at].join(" ")
      end
      ticks = entries.each_with_index.map { |(name, _), at| "#{quote(name)} #{entries.size - at}" }.join(", ")
      draw(file, <<~GNUPLOT, [data])
        set terminal svg size 800,#{120 + 26 * entries.size} font "sans-serif,13" background "white"
        set title "Run time, candidate / baseline"
        set xlabel "ratio (left of 1: the candidate is faster)"
        set ytics (#{ticks})
        set xrange [#{[entries.map { |_, i| i.low }.min, 0.5].max}:#{[entries.map { |_, i| i.high }.max, 2.0].min}]
        set yrange [0.3:#{entries.size + 0.7}]
        set grid x
        set arrow from 1, graph 0 to 1, graph 1 nohead lc rgb "#888888" lw 1.5
        plot "$data0" using 1:4:2:3 with xerrorbars pt 7 ps 0.6 lc rgb "#1f5fa8" lw 1.5 notitle
      GNUPLOT
    end

    # lines: [[title, [[frames, ns, low, high], ...]], ...]; both axes are logarithmic
    def cost_by_depth(file, lines)
      lines = lines.reject { |_, points| points.empty? }
      return "nothing was measured" if lines.empty?
      plots = lines.each_with_index.map do |(title, _), i|
        %("$data#{i}" using 1:2:3:4 with yerrorlines pt 7 ps 0.6 lw 1.5 title #{quote(title)})
      end
      draw(file, <<~GNUPLOT, lines.map { |_, points| points.map { |point| point.join(" ") } })
        set terminal svg size 800,500 font "sans-serif,13" background "white"
        set title "Cost of one traced exit, above the untraced loop"
        set xlabel "frames on the stack"
        set ylabel "ns"
        set logscale xy
        set xrange [#{lines.flat_map { |_, points| points.map(&:first) }.minmax.zip([0.8, 1.25]).map { |x, by| x * by }.join(':')}]
        set xtics (#{lines.flat_map { |_, points| points.map(&:first) }.uniq.sort.join(', ')})
        set grid
        set key left top
        plot #{plots.join(', ')}
      GNUPLOT
    end

    # labels: of the commits; lines: [[title, [[index of the commit, ratio, low, high], ...]], ...]
    def history(file, labels, lines)
      lines = lines.select { |_, points| points.size > 1 }
      return "nothing was compared" if lines.empty?
      plots = lines.each_with_index.map do |(title, _), i|
        %("$data#{i}" using 1:2:3:4 with yerrorlines pt 7 ps 0.5 lw 1.5 title #{quote(title)})
      end
      ratios, lows, highs = (1..3).map { |at| lines.flat_map { |_, points| points.map { |point| point[at] } } }
      every = (labels.size / 60.0).ceil # labels that have room
      ticks = labels.each_with_index.filter_map { |label, at| "#{quote(label)} #{at}" if at % every == 0 }
      draw(file, <<~GNUPLOT, lines.map { |_, points| points.map { |point| point.join(" ") } })
        set terminal svg size #{(200 + 22 * labels.size).clamp(800, 1600)},500 font "sans-serif,13" background "white"
        set title "Run time of each commit / of the first"
        set ylabel "ratio (above 1: slower)"
        set xtics rotate by -60 (#{ticks.join(", ")})
        set xrange [-0.5:#{labels.size - 0.5}]
        set yrange [#{[lows.min, [0.5, ratios.min].min].max * 0.98}:#{[highs.max, [2.0, ratios.max].max].min * 1.02}]
        set grid y
        set key outside top center horizontal
        plot #{plots.join(", ")}
      GNUPLOT
    end

    def draw(file, script, data)
      blocks = data.each_with_index.map { |lines, i| "$data#{i} << EOD\n#{lines.join("\n")}\nEOD\n" }.join
      # A data block is named without quotes.
      script = script.gsub(/"(\$data\d+)"/, '\1')
      new = "#{file}.new"
      out, status = Open3.capture2e("gnuplot", stdin_data: "#{blocks}set output #{string(new)}\n#{script}")
      unless status.success?
        File.delete(new) if File.exist?(new)
        return "gnuplot: #{out.lines.last.to_s.strip}"
      end
      File.rename(new, file)
      nil
    rescue Errno::ENOENT => e
      e.message.end_with?(" - gnuplot") ? "gnuplot is not installed (Debian: apt-get install gnuplot-nox)" : e.message
    rescue SystemCallError => e
      e.message
    end

    # A string of gnuplot's language.
    def string(text)
      "\"#{text.gsub(/["\\]/) { "\\#{_1}" }}\""
    end

    # The same for a text in the drawing, where _ and ^ would make sub- and superscripts.
    def quote(text)
      string(text.gsub(/[_^@&{}\\]/) { "\\#{_1}" })
    end
  end
end
