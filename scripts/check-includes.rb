#!/usr/bin/env ruby
# Checks that includes point one way, and keeps the picture of the layers in doc/**/architecture.md up to date.
#   check-includes.rb [ROOT]            fails on an include of a higher layer, a cycle of includes or calls, a file in no
#                                       layer, what only one system has outside of its folder, or an old picture
#   check-includes.rb --write [ROOT]    writes the picture
# A source and its header (name.c, name.h) count as one unit, so a cycle is one between units.

# Of each source tree, the layers from the bottom up: a folder, or the files that a glob finds (a file belongs to the first
# glob that matches it, else to its folder). `outside` names the layers that may include headers from elsewhere; `shared`
# a folder of another tree that all layers may include; `systems` the folder for what differs between systems.
TREES = {
  "vm_trace" => {
    layers: ["include", "*.h", "disabled.c", "schema", "platform", "base", "store", "host/host.h", "host", "capture",
             "streams", "session", "ruby"],
    outside: ["disabled.c", "platform", "host", "ruby"], # platform: the list of system calls that the build makes
    systems: "platform"
  },
  "tools/vm-trace" => {
    layers: ["base", "fxt", "analysis", "render", "topics", "sql", "source", "report", "diff", "page", "export",
             "check", "scrub", "cli/*.[ch]", "cli/commands", "main.c"],
    shared: "vm_trace/schema/",
    outside: ["page"], # the page of `vm-trace html`, as strings that the build makes
    calls: true # between files, these have no circles either
  }
}

# What only some systems have: in code without comments, macros, headers, functions and paths.
OF_ONE_SYSTEM = /
  \b(?:__linux__|__linux|__GLIBC__|__APPLE__|__FreeBSD__|__NetBSD__|__OpenBSD__|__sun|_WIN32|_GNU_SOURCE)\b |
  <(?:(?:linux|asm|mach|mach-o|machine)\/.*|link\.h|ucontext\.h|features\.h|libproc\.h|
    sys\/(?:auxv|epoll|event|eventfd|file|inotify|prctl|random|signalfd|statfs|statvfs|syscall|sysctl|timerfd|
      vfs)\.h)> |
  \b(?:syscall|prctl|gettid|tgkill|membarrier|fallocate|posix_fallocate|f?statv?fs|memfd_create|shm_open|flock|
    renameat2|accept4|madvise|mremap|sem_clockwait|asprintf|dl_iterate_phdr|dladdr|getpeereid|pthread_setname_np|
    sys_icache_invalidate)\( |
  \b(?:SYS_\w+|MADV_\w+|PR_SET_\w+|F_ADD_SEALS|MAP_NORESERVE|MAP_FIXED_NOREPLACE|SOCK_CLOEXEC|SO_PEERCRED|
    CLOCK_BOOTTIME|SIGEV_THREAD_ID)\b |
  "\/(?:proc|sys)\/
/x

class Tree
  attr_reader :name, :faults

  def initialize(root, name, layers:, outside:, shared: nil, calls: false, systems: nil)
    @root, @name, @layers, @outside, @shared, @calls, @systems = root, name, layers, outside, shared, calls, systems
    @files = Dir.glob("**/*.{c,h,def}", base: File.join(root, name)).sort
    @faults = []
    @includes = @files.to_h { |file| [file, read(file)] }
  end

  # Whether the tree has any of these folders: one that was not yet divided has nothing to check.
  def layered? = @layers.any? { |layer| File.directory?(File.join(@root, @name, layer)) }

  def check
    @files.each do |file|
      layer = layer_of(file) or next fault(file, nil, "is in no layer; #{@name}/ has #{@layers.join(", ")}")
      @includes[file].each { |line, included| check_include(file, layer, line, included) }
      check_systems(file) if @systems && layer != @systems && !file.end_with?(".def")
    end
    cycles(includes_of_units).each { |units| @faults << "#{@name}: these include each other: #{units.sort.join(", ")}" }
    cycles(calls_of_units).each { |units| @faults << "#{@name}: these call each other: #{units.sort.join(", ")}" } if @calls
    @faults
  end

  # A row for each layer, the highest first, and one for each folder in it: the units, and the places that these
  # include. Tables (.def) belong to the unit that includes them.
  def picture
    places = @files.select { |file| layer_of(file) && !file.end_with?(".def") }.group_by { |file| place(file) }
    order = places.keys.sort_by { |place| [-@layers.index(layer_of(places[place].first)), place] }
    rows = places.sort_by { |place, _| order.index(place) }.map do |place, files|
      below = files.flat_map { |file| @includes[file].map { |_, to| to && place(to) } }.compact.uniq - [place]
      names = files.map { |file| File.basename(file, ".*") }.uniq.sort
      included = below.sort_by { |to| order.index(to) || order.size }.map { |to| "`#{to}`" }
      "| `#{place}` | #{names.join(", ")} | #{included.join(", ")} |"
    end
    ["`#{@name}/`, the highest layer first:", "", "| layer | units | includes |", "|---|---|---|", *rows].join("\n")
  end

  def includes_of_units
    graph = Hash.new { |h, k| h[k] = [] }
    @includes.each { |file, list| list.each { |_, to| graph[unit(file)] << unit(to) if to && unit(to) != unit(file) } }
    graph
  end

  # Of each unit those with functions that it names. A definition begins a line with the name, below its type.
  def calls_of_units
    texts = @files.select { |file| file.end_with?(".c") }.to_h do |file|
      [unit(file), File.read(File.join(@root, @name, file), encoding: "UTF-8").gsub(%r{/\*.*?\*/|"(?:\\.|[^"\\\n])*"}m, "")]
    end
    home = {}
    texts.each { |unit, text| text.scan(/^(?!static\b)\w.*\n(\w+)\(/) { home[$1] = unit } }
    texts.to_h { |unit, text| [unit, text.scan(/\w+/).uniq.filter_map { |word| home[word] } - [unit]] }
  end

  # Units that reach each other: the strongly connected components of more than one (Tarjan).
  def cycles(graph)
    index, low, stack, found = {}, {}, [], []
    visit = lambda do |node|
      index[node] = low[node] = index.size
      stack << node
      graph.fetch(node, []).uniq.each do |to|
        if !index[to] then visit[to]; low[node] = [low[node], low[to]].min
        elsif stack.include?(to) then low[node] = [low[node], index[to]].min
        end
      end
      next if low[node] != index[node]
      component = stack.slice!(stack.index(node)..)
      found << component if component.size > 1
    end
    graph.keys.each { |node| visit[node] unless index[node] }
    found
  end

  private

  def unit(file) = file.sub(/\.([ch]|def)\z/, "")

  def title(layer) = layer == "*.h" ? "vm_trace.h" : layer.include?(".") ? layer : "#{layer}/"

  # What the picture calls the place of a file: its folder, unless a glob made the layer.
  def place(file)
    layer = layer_of(file)
    layer.include?(".") || file.end_with?(".def") ? title(layer) : "#{File.dirname(file)}/"
  end

  def layer_of(file)
    @layers.find { |layer| layer.include?(".") && File.fnmatch(layer, file, File::FNM_PATHNAME) } ||
      @layers.find { |layer| file.start_with?("#{layer}/") }
  end

  # [[line number, the file of this tree that it includes, or nil], ...]
  def read(file)
    File.readlines(File.join(@root, @name, file), encoding: "UTF-8").each.with_index(1).filter_map do |text, line|
      included = text[/\A\s*#\s*include\s+"([^"]+)"/, 1] or next
      candidates = [included.delete_prefix("#{@name}/"), File.join(File.dirname(file), included).delete_prefix("./")]
      [line, candidates.find { |candidate| @files.include?(candidate) }, included]
    end.map { |line, to, text| (@texts ||= {})[[file, line]] = text; [line, to] }
  end

  def check_include(file, layer, line, to)
    if !to
      included = @texts[[file, line]]
      return if @outside.include?(layer) || (@shared && included.start_with?(@shared) && File.file?(File.join(@root, included)))
      fault(file, line, "includes #{included}, which is not of #{@name}/")
    elsif @layers.index(layer_of(to)).to_i > @layers.index(layer)
      fault(file, line, "includes #{to}: #{title(layer)} is below #{title(layer_of(to))}")
    end
  end

  def check_systems(file)
    text = File.read(File.join(@root, @name, file), encoding: "UTF-8")
    code = text.gsub(%r{/\*.*?\*/}m) { |comment| comment.gsub(/[^\n]/, "") }
    code.each_line.with_index(1) do |content, line|
      word = content[OF_ONE_SYSTEM] or next
      fault(file, line, "has #{word}, which not every system has: it belongs to #{@name}/#{@systems}/")
    end
  end

  def fault(file, line, text) = @faults << "#{@name}/#{file}#{":#{line}" if line}: #{text}"
end

BEGIN_PICTURE = "<!-- layers: written by scripts/check-includes.rb --write -->"
END_PICTURE = "<!-- end of layers -->"

write = ARGV.delete("--write")
root = ARGV.shift || File.expand_path("..", __dir__)
trees = TREES.map { |name, layers| Tree.new(root, name, **layers) }.select(&:layered?)
abort "check-includes.rb: #{root} has none of #{TREES.keys.join(", ")}" if trees.empty?
faults = trees.flat_map(&:check)

page = Dir.glob("doc/**/architecture.md", base: root).first
text = page && File.read(File.join(root, page), encoding: "UTF-8")
from, to = text&.index(BEGIN_PICTURE), text&.index(END_PICTURE)
if from && to
  picture = "#{BEGIN_PICTURE}\n#{trees.map(&:picture).join("\n\n")}\n"
  if text[from...to] != picture
    if write then File.write(File.join(root, page), text[0...from] + picture + text[to..])
    else faults << "#{page}: the picture of the layers is old; ruby scripts/check-includes.rb --write writes it"
    end
  end
else
  faults << "doc/: there is no architecture.md with \"#{BEGIN_PICTURE}\" and \"#{END_PICTURE}\""
end
puts faults
exit faults.empty?
