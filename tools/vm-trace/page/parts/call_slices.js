// The calls of the trace, from #data's `calls` and from the numbers in #calls-data:
//
//   methods     [name, calls, total ns, own ns, longest ns] of the whole trace, largest own time first
//   tracks      [process, tid, name, slices]
//   recorded    calls; slices: how many of them, the longest ones, the page has; extras (see below)
//   picked      whether it has those of chosen methods
//   unrecorded  calls that the tracer left out; misfits: calls that do not nest
//
// #calls-data is base64 of a zlib stream of varints (lowest 7 bits first). These are columns with an
// entry for each slice, by track, then by begin, outer ones first:
//
//   begin: ns since the begin of the last slice of its track, at first since the trace's
//   length in ns
//   method: its number in `methods`
//
// Then, for each of the `extras`: the slice (its number less that of the last one), bits (1: it began
// before the trace, 2: it ended after it), calls inside that are not recorded, their ns.
"use strict";
function call_slices({ data, S, label_threads }) {
  const FLAME_NODES_MAX = 200000, NO_NODE = 0xffffffff, SUSPENDED = "(fiber suspended)"; // a slice, but no call
  const calls = data.calls, count = calls.slices;
  const methods = calls.methods.map(([name, times, total, own_ns, longest]) => (
    { name: S[name], calls: times, total, own: own_ns, longest }));
  const suspended_number = methods.findIndex(({ name }) => name === SUSPENDED);
  const called = methods.filter(({ name }) => name !== SUSPENDED);
  const begins = new Float64Array(count), ends = new Float64Array(count), own = new Float64Array(count);
  const method_of = new Uint32Array(count), depth_of = new Uint32Array(count), parent_of = new Int32Array(count);
  const recursive = new Uint8Array(count); // a call of the same method contains it
  const extras = new Map();
  let first = 0;
  const tracks = calls.tracks.map(([process, tid, name, slices]) => {
    const track = { process, tid, name: S[name] || `thread ${tid}`, first, end: first + slices, rows: [] };
    first = track.end;
    return track;
  }).filter((track) => track.end > track.first);
  label_threads(tracks, data.processes);

  const can_unpack = () => typeof DecompressionStream === "function";

  async function unpack() {
    const packed = packed_bytes(document.getElementById("calls-data").textContent);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    read_columns(new Uint8Array(await new Response(stream).arrayBuffer()));
    for (const track of tracks) nest(track);
  }

  function read_columns(bytes) {
    const next = packed_reader(bytes);
    for (const track of tracks) {
      let begin = 0;
      for (let i = track.first; i < track.end; i++) begins[i] = begin += next();
    }
    for (let i = 0; i < count; i++) ends[i] = begins[i] + next();
    for (let i = 0; i < count; i++) method_of[i] = next();
    let slice = 0;
    for (let i = 0; i < calls.extras; i++) {
      slice += next();
      const bits = next();
      extras.set(slice, { before: (bits & 1) !== 0, after: (bits & 2) !== 0, left_out: next(), left_out_ns: next() });
    }
  }

  // Depths and parents, and the slices of each depth: these do not overlap.
  function nest(track) {
    const open = [], running = new Map(), of_depth = [];
    for (let i = track.first; i < track.end; i++) {
      while (open.length > 0 && ends[open[open.length - 1]] <= begins[i]) {
        const method = method_of[open.pop()];
        running.set(method, running.get(method) - 1);
      }
      const depth = open.length, parent = depth > 0 ? open[depth - 1] : -1, length = ends[i] - begins[i];
      depth_of[i] = depth;
      parent_of[i] = parent;
      own[i] = length;
      if (parent >= 0) own[parent] -= length;
      const times = running.get(method_of[i]) || 0;
      recursive[i] = times > 0 ? 1 : 0;
      running.set(method_of[i], times + 1);
      of_depth[depth] = (of_depth[depth] || 0) + 1;
      open.push(i);
    }
    const used = new Array(of_depth.length).fill(0);
    track.rows = of_depth.map((size) => new Uint32Array(size));
    for (let i = track.first; i < track.end; i++) track.rows[depth_of[i]][used[depth_of[i]]++] = i;
  }

  // The place of the first slice of a row that ends after a time.
  function first_after(row, ns, low = 0) {
    let high = row.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ends[row[middle]] > ns) high = middle; else low = middle + 1;
    }
    return low;
  }

  // Calls `visit` with each slice in a window and the ns of it that are inside.
  function visit_window([from, to], visit) {
    for (const track of tracks) {
      let low = track.first, high = track.end; // the first slice that begins in the window
      while (low < high) {
        const middle = (low + high) >> 1;
        if (begins[middle] >= from) high = middle; else low = middle + 1;
      }
      const around = [];
      for (let i = low - 1; i >= track.first; i = parent_of[i]) if (ends[i] > from) around.push(i);
      for (let i = around.length; i-- > 0;) visit(around[i], Math.min(ends[around[i]], to) - from);
      for (let i = low; i < track.end && begins[i] < to; i++) visit(i, Math.min(ends[i], to) - begins[i]);
    }
  }

  // Sums by method of a window, at whose borders calls are cut.
  function sums_in(window) {
    const sums = methods.map(({ name }) => ({ name, calls: 0, total: 0, own: 0, longest: 0 }));
    visit_window(window, (i, ns) => {
      const sum = sums[method_of[i]], parent = parent_of[i];
      if (parent >= 0) sums[method_of[parent]].own -= ns;
      if (method_of[i] === suspended_number) return;
      sum.calls++;
      sum.own += ns;
      if (!recursive[i]) sum.total += ns;
      if (ns > sum.longest) sum.longest = ns;
    });
    return sums.filter((sum) => sum.calls > 0).sort((a, b) => b.own - a.own || b.total - a.total);
  }

  // The time in which a fiber does not run, the slice `i`, is none of the calls around it.
  function take_out(nodes, node_of, i, column, ns) {
    let node = parent_of[i] < 0 ? NO_NODE : node_of[parent_of[i]];
    while (node !== NO_NODE) {
      nodes[node][column] -= ns;
      node = node === 0 ? NO_NODE : nodes[node].parent;
    }
  }

  // The nodes of a flame graph, and for each slice its node. Paths beyond the limit stay in their callers.
  let flame = null;
  function flame_paths() {
    if (flame) return flame;
    const nodes = [{ parent: 0, text: "all calls", total: 0 }], node_of = new Uint32Array(count);
    const by_key = new Map();
    let left_out = 0;
    for (let i = 0; i < count; i++) {
      if (method_of[i] === suspended_number) {
        node_of[i] = NO_NODE;
        take_out(nodes, node_of, i, "total", ends[i] - begins[i]);
        continue;
      }
      const above = parent_of[i] < 0 ? 0 : node_of[parent_of[i]], key = above * methods.length + method_of[i];
      let node = above === NO_NODE ? NO_NODE : by_key.get(key);
      if (node === undefined) {
        if (nodes.length < FLAME_NODES_MAX) {
          node = nodes.length;
          nodes.push({ parent: above, text: methods[method_of[i]].name, total: 0 });
          by_key.set(key, node);
        } else {
          node = NO_NODE;
          left_out++;
        }
      }
      node_of[i] = node;
      if (node === NO_NODE) continue;
      nodes[node].total += ends[i] - begins[i];
      if (above === 0) nodes[0].total += ends[i] - begins[i];
    }
    flame = { nodes: flame_nodes(nodes), node_of, left_out };
    return flame;
  }

  function weigh_flame(window) {
    const { nodes, node_of } = flame_paths();
    for (const node of nodes) node.value = node.calls = 0;
    visit_window(window, (i, ns) => {
      if (method_of[i] === suspended_number) take_out(nodes, node_of, i, "value", ns);
      if (node_of[i] === NO_NODE) return;
      const node = nodes[node_of[i]];
      node.value += ns;
      node.calls++;
      if (node.parent === 0) nodes[0].value += ns;
    });
  }

  return {
    count, methods, called, tracks, begins, ends, own, method_of, depth_of, parent_of, extras, can_unpack, unpack,
    first_after, sums_in, flame_paths, weigh_flame,
  };
}
