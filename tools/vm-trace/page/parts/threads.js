// Draws what each thread and fiber did over time, and the tables beside it, from #data's `timeline`:
//
//   tracks    [process, tid, name, ractor, others ns, held ns, held in GC ns, longest hold ns, its start,
//             marker, segments], those that waited longest first
//   pauses    segments of garbage collections
//   names     [method, class] of what blocked       reasons  [kind, reason, major by] of collections
//   left_out  threads without a track               left_out_ns  their sums: waiting, blocked, in GC, running
//   fibers    as tracks; waiting is ready, blocked is waiting; fibers_left_out, fibers_left_out_ns
//
// Segments are a list of numbers. Each begins with flags, the ns since the last one's end, and its
// length. Then comes what the bits of the flags say:
//   0-1  the state with most time: waiting, blocked, in GC, running
//   2    folded: pieces, ns waiting, blocked, in GC, running; number of names, and for each: name,
//        count, ns, longest, first pauses
//   3    not folded, with a name: name (-1: there are too many), ns
//   4    with a thread: the one that woke this one, or that collects
//   5    the first pause of a collection
"use strict";
function threads_view({
  data, S, search, $, el, svg, number, percent, plural, time, with_times, round_step, show_tip, hide_tip, cost,
  page_window, breakable, label_threads,
}) {
  const timeline = data.timeline;
  const WAITING = 0, BLOCKED = 1, GC = 2, RUNNING = 3;
  const STATES = ["waiting for the GVL", "blocked", "in GC", "running"];
  const SLICES = [
    ["compiled", "compiled code"], ["exited", "interpreted because of exits"],
    ["interpreted", "otherwise interpreted"], ["compiling", "compiling"],
  ];
  const SHORT = ["waiting", "blocked", "in GC", "running"];
  const OF_FIBER = ["ready", "waiting", "in GC", "running"]; // names of the same states
  const state_name = (track, state) => (track.fiber ? OF_FIBER : STATES)[state];
  const STRIP = 6; // below a row: execution slices
  const ROW = 16, LABEL = 168, AXIS = 20, AT_FIRST = 16;

  function decode(numbers) {
    const segments = [];
    let i = 0, at = 0;
    while (i < numbers.length) {
      const what = numbers[i++], from = at + numbers[i++], to = from + numbers[i++], state = what & 3;
      const segment = { from, to, state, pieces: 1, ns: null, names: [], by: null };
      if (what & 4) {
        segment.pieces = numbers[i];
        segment.ns = numbers.slice(i + 1, i + 5);
        const end = i + 6 + 5 * numbers[i + 5];
        for (i += 6; i < end; i += 5) segment.names.push(numbers.slice(i, i + 5));
      } else if (what & 8) {
        segment.names.push([numbers[i], 1, numbers[i + 1], numbers[i + 1], what & 32 ? 1 : 0]);
        i += 2;
      }
      if (what & 16) segment.by = S[numbers[i++]];
      segments.push(segment);
      at = to;
    }
    return segments;
  }

  const decode_all = (list, fiber) => list.map(
    ([process, tid, name, ractor, others, held, held_gc, longest, longest_at, marker, segments], index) => ({
      index, process, pid: data.processes[process].text, tid, ractor, others, held, held_gc, longest, longest_at,
      marker: S[marker], segments: decode(segments), name: S[name] || `thread ${tid}`, fiber,
    }));
  const tracks = decode_all(timeline.tracks, false), fibers = decode_all(timeline.fibers, true);
  const pauses = { index: -1, name: "GC pauses", segments: decode(timeline.pauses) };
  const has_threads = tracks.length > 0, has_fibers = fibers.length > 0, has_gc = pauses.segments.length > 0;
  label_threads([...tracks, ...fibers], data.processes);
  const seen = new Map(), key_of = ({ process, name }) => `${process} ${name}`;
  for (const track of tracks) seen.set(key_of(track), (seen.get(key_of(track)) || 0) + 1);

  const slices_of = (track) => (seen.get(key_of(track)) > 1 ? [] : cost.slices_of(track.process, track.name));
  for (const track of tracks) track.slices = slices_of(track);
  for (const track of [pauses, ...fibers]) track.slices = [];
  const has_slices = tracks.some((track) => track.slices.length > 0);

  const { whole, is_whole, zoom, back } = page_window, set_window = page_window.set;
  const view = { window: whole, order: "waiting", shown: AT_FIRST, row: -1, segment: -1, tables: new Map() };

  // --- sums over a window ----------------------------------------------------------------------

  function first_after(segments, ns) { // the first segment that ends after a time
    let low = 0, high = segments.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (segments[middle].to > ns) high = middle; else low = middle + 1;
    }
    return low;
  }

  function* within(track, [from, to]) {
    for (let i = first_after(track.segments, from); i < track.segments.length && track.segments[i].from < to; i++)
      yield track.segments[i];
  }

  const overlap = (from, to, window) => Math.max(0, Math.min(to, window[1]) - Math.max(from, window[0]));
  const part_of = (segment, window) => overlap(segment.from, segment.to, window) / (segment.to - segment.from);

  // Adds the part of a segment in a window to sums by state. Returns whether that is only about right.
  function add_states(sums, segment, window) {
    if (segment.ns === null) {
      sums[segment.state] += overlap(segment.from, segment.to, window);
      return false;
    }
    const part = part_of(segment, window);
    for (let state = 0; state < 4; state++) sums[state] += segment.ns[state] * part;
    return part < 1;
  }

  // How many threads or fibers have no lane, and their sums.
  const left_out_of = (list) => (list === fibers
    ? { left_out: timeline.fibers_left_out, ns: timeline.fibers_left_out_ns, what: "other fiber" }
    : { left_out: timeline.left_out, ns: timeline.left_out_ns, what: "other thread" });

  function state_rows(window, list = tracks) {
    let about = false;
    const { left_out, ns, what } = left_out_of(list);
    const rows = list.map((track) => {
      const ns = [0, 0, 0, 0];
      for (const segment of within(track, window)) about = add_states(ns, segment, window) || about;
      return { track, ns, life: ns[0] + ns[1] + ns[2] + ns[3] };
    }).filter((row) => row.life > 0);
    rows.sort((a, b) => b.ns[WAITING] - a.ns[WAITING] || b.life - a.life);
    if (left_out > 0 && is_whole()) {
      rows.push({
        track: { label: `(${plural(left_out, what)})` },
        ns,
        life: ns.reduce((a, b) => a + b, 0)
      });
    }
    return { rows, about };
  }

  // Sums by name: what blocked counts as far as it lies in the window, a pause where it begins.
  function name_rows(list, window, clipped) {
    const sums = new Map();
    let about = false;
    for (const track of list) {
      for (const segment of within(track, window)) {
        const part = segment.pieces === 1 ? 1 : part_of(segment, window);
        if (part < 1) about = true;
        if (!clipped && segment.pieces === 1 && segment.from < window[0]) continue;
        for (const [name, count, ns, longest, firsts] of segment.names) {
          const counted = clipped && segment.pieces === 1 ? overlap(segment.to - ns, segment.to, window) : ns * part;
          if (counted === 0) continue;
          let sum = sums.get(name);
          if (!sum) sums.set(name, sum = { name, count: 0, ns: 0, longest: 0, firsts: 0 });
          sum.count += count * part;
          sum.firsts += firsts * part;
          sum.ns += counted;
          sum.longest = Math.max(sum.longest, segment.pieces === 1 ? counted : longest);
        }
      }
    }
    return { rows: [...sums.values()].sort((a, b) => b.ns - a.ns), about };
  }

  // For each ractor, who ran while others waited. In a folded segment a thread runs, and waits, for a
  // share of the time.
  function holder_rows(window) {
    if (is_whole())
      return { rows: tracks.filter((track) => track.held > 0).sort((a, b) => b.others - a.others), about: false };
    const edges = new Map();
    let about = timeline.left_out > 0;
    for (const track of tracks) {
      for (const segment of within(track, window)) {
        const length = segment.to - segment.from,
              one = (state) => (segment.ns === null ? (segment.state === state ? 1 : 0) : segment.ns[state] / length);
        const gc = one(GC), runs = one(RUNNING) + gc, waits = one(WAITING);
        if (segment.ns !== null) about = true;
        if (runs === 0 && waits === 0) continue;
        if (!edges.has(track.ractor)) edges.set(track.ractor, []);
        edges.get(track.ractor).push(
          [Math.max(segment.from, window[0]), 1, track, runs, waits, gc],
          [Math.min(segment.to, window[1]), -1, track, runs, waits, gc]);
      }
    }
    const rows = new Map();
    for (const list of edges.values()) {
      list.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      const running = new Map(), waiting = new Map();
      let all = 0, at = 0;
      for (const [ns, sign, track, runs, waits, gc] of list) {
        for (const [holder, share] of ns > at && all > 1e-9 ? running : []) {
          const others = all - (waiting.get(holder) || 0), length = (ns - at) * share.runs;
          if (others < 1e-9) continue;
          let row = rows.get(holder);
          if (!row) {
            row = { label: holder.label, others: 0, held: 0, held_gc: 0, longest: 0, hold: 0, ended: -1 };
            rows.set(holder, row);
          }
          row.others += length * others;
          row.held += length * Math.min(1, others);
          row.held_gc += (ns - at) * share.gc * Math.min(1, others);
          if (row.hold === 0) row.began = at;
          row.hold += length * Math.min(1, others);
          if (row.hold > row.longest) { row.longest = row.hold; row.longest_at = row.began; }
        }
        at = ns;
        if (runs > 0) {
          const row = rows.get(track);
          if (sign > 0) {
            running.set(track, { runs, gc });
            if (row && row.ended !== ns) row.hold = 0; // another hold begins
          } else {
            running.delete(track);
            if (row) row.ended = ns;
          }
        }
        if (waits > 0) {
          all += sign * waits;
          waiting.set(track, (waiting.get(track) || 0) + sign * waits);
        }
      }
    }
    return { rows: [...rows.values()].sort((a, b) => b.others - a.others), about };
  }

  // --- tables ------------------------------------------------------------------------------------

  function draw_table(id, title, { rows: all, about }, columns, note) {
    const texts = columns.filter(([, kind]) => kind === "text");
    const rows = all.filter((row) => search.matches(texts.map(([, , value]) => value(row)).join(" ")));
    const shown = view.tables.get(id) || 10;
    const head = columns.map(
      ([name, kind]) => el("th", { scope: "col", class: kind === "text" ? undefined : "number", text: name }));
    const cells_of = (row) => columns.map(([, kind, value]) => (kind === "time" ? { ns: value(row) } : value(row)));
    const draw_cell = (cell, i) => (columns[i][1] === "text"
      ? el("td", { class: "name" }, ...breakable(cell)) : el("td", { class: "number", text: cell }));
    const body = with_times(rows.slice(0, shown).map(cells_of)).map((row) => el("tr", {}, ...row.map(draw_cell)));
    const more = rows.length <= shown ? null : el("button", {
      type: "button",
      text: `Show ${number(Math.min(100, rows.length - shown))} more of ${number(rows.length)}`,
      onclick() {
        view.tables.set(id, shown + 100);
        draw_tables();
      }
    });
    if (rows.length === 0 && search.any()) {
      const nothing = el("td", { class: "empty", colspan: columns.length, text: "Nothing matches." });
      body.push(el("tr", {}, nothing));
    }
    return el("div", { id, class: "part" }, el("h3", { text: (about ? "About: " : "") + title }),
      note ? el("p", { class: "muted", text: note }) : null,
      el("div", { class: "scroll" },
        el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body))),
      more);
  }

  const cells = {
    state: (state, names = SHORT) => [names[state], "time", (row) => row.ns[state]],
    share: (state) => ["%", "number", (row) => percent(row.ns[state], row.life)],
    blocked: (index) => (row) =>
      (row.name < 0 ? (index === 0 ? "(other methods)" : "") : S[timeline.names[row.name][index]]),
    reason: (index) => (row) =>
      (row.name < 0 ? (index === 0 ? "(others)" : "") : S[timeline.reasons[row.name][index]]),
  };

  function draw_tables() {
    const window = view.window, parts = [];
    if (has_threads) {
      const states = state_rows(window);
      const blocked = name_rows(tracks, window, true);
      const holders = holder_rows(window);
      const blocked_ns = blocked.rows.reduce((sum, row) => sum + row.ns, 0),
            others_ns = holders.rows.reduce((sum, row) => sum + row.others, 0);
      const columns = [["thread", "text", (row) => row.track.label], ["life", "time", (row) => row.life]];
      for (const state of [WAITING, BLOCKED, GC, RUNNING])
        if (state !== GC || has_gc) columns.push(cells.state(state), cells.share(state));
      parts.push(
        draw_table("thread-states", `where the time of ${plural(states.rows.length, "thread")} went`, states, columns,
          !is_whole() && timeline.left_out > 0
            ? `Without ${plural(timeline.left_out, "thread")} that the page has no timeline of.`
            : ""));
      if (holders.rows.length > 0) {
        parts.push(
          draw_table("gvl-holders", `who held the GVL while others waited: they waited ${time(others_ns)}`, holders, [
            ["thread", "text", (row) => row.label], ["others waited", "time", (row) => row.others],
            ["share", "number", (row) => percent(row.others, others_ns)], ["held", "time", (row) => row.held],
            ["longest hold", "time", (row) => row.longest], ["at", "time", (row) => row.longest_at],
            ...(is_whole() && holders.rows.some((row) => row.marker)
              ? [["in marker", "text", (row) => row.marker]] : [])
          ]));
      }
      if (blocked.rows.length > 0) {
        const classes = timeline.names.some(([, of_class]) => S[of_class] !== "");
        parts.push(draw_table("blocked", `blocked in: ${time(blocked_ns)}`, blocked, [
          ["blocked in", "text", cells.blocked(0)], ...(classes ? [["class", "text", cells.blocked(1)]] : []),
          ["count", "number", (row) => number(row.count)], ["total", "time", (row) => row.ns],
          ["share", "number", (row) => percent(row.ns, blocked_ns)], ["longest", "time", (row) => row.longest]
        ]));
      }
    }
    if (has_fibers) {
      const states = state_rows(window, fibers), waits = name_rows(fibers, window, true);
      const waited_ns = waits.rows.reduce((sum, row) => sum + row.ns, 0);
      const columns = [["fiber", "text", (row) => row.track.label], ["life", "time", (row) => row.life]];
      for (const state of [WAITING, BLOCKED, RUNNING]) columns.push(cells.state(state, OF_FIBER), cells.share(state));
      const left_out = is_whole() ? 0 : timeline.fibers_left_out;
      parts.push(draw_table("fiber-states", `what ${plural(states.rows.length, "fiber")} did`, states, columns,
        "Short waits after short runs, and these runs, are not recorded." +
          (left_out > 0 ? ` Without ${plural(left_out, "fiber")} that the page has no timeline of.` : "")));
      parts.push(draw_table("fiber-waits", `fibers waited in, until they were ready: ${time(waited_ns)}`, waits, [
        ["waited in", "text", cells.blocked(0)], ["count", "number", (row) => number(row.count)],
        ["total", "time", (row) => row.ns], ["share", "number", (row) => percent(row.ns, waited_ns)],
        ["longest", "time", (row) => row.longest]
      ]));
    }
    if (has_gc) {
      const gc = name_rows([pauses], window, false);
      const all_ns = gc.rows.reduce((sum, row) => sum + row.ns, 0);
      parts.push(draw_table("gc", `garbage collections: ${time(all_ns)}`, gc, [
        ["kind", "text", cells.reason(0)],
        ["reason", "text", cells.reason(1)],
        ["major by", "text", cells.reason(2)], ["collections", "number", (row) => number(row.firsts)],
        ["pauses", "number", (row) => number(row.count)], ["total", "time", (row) => row.ns],
        ["share", "number", (row) => percent(row.ns, all_ns)], ["longest", "time", (row) => row.longest]
      ]));
    }
    refill($("thread-tables"), ...parts);
  }

  // --- rows ----------------------------------------------------------------------------------------

  let width = 0;
  const x_of = (ns) => (ns - view.window[0]) / (view.window[1] - view.window[0]) * width;
  const ns_at = (x) => view.window[0] + Math.max(0, Math.min(1, x / width)) * (view.window[1] - view.window[0]);

  // A column shows the shares of the states in its time, from the top. In the row of pauses the height
  // is their share of the time.
  function paths_of(track) {
    const window = view.window, ns_per_x = (window[1] - window[0]) / width;
    const paths = ["", "", "", ""], gaps = track === pauses;
    const block = (x, columns, sums, length) => {
      const all = gaps ? length : sums[0] + sums[1] + sums[2] + sums[3];
      let y = 0;
      for (let state = 0; state < 4; state++) {
        if (sums[state] <= 0) continue;
        const height = gaps ? Math.max(3, ROW * Math.min(1, sums[state] / all)) : ROW * sums[state] / all;
        if (gaps) y = ROW - height;
        paths[state] += `M${x} ${y.toFixed(1)}h${columns}v${height.toFixed(1)}h${-columns}z`;
        y += height;
      }
    };
    let column = -1, sums = [0, 0, 0, 0];
    const flush = () => {
      if (column >= 0) block(column, 1, sums, ns_per_x);
      column = -1;
      sums = [0, 0, 0, 0];
    };
    for (const segment of within(track, window)) {
      const first = Math.max(0, Math.floor(x_of(segment.from))),
            last = Math.min(width - 1, Math.floor(x_of(segment.to)));
      for (let x = first; x <= last; x++) {
        if (x > first && x < last) { // whole columns, all alike
          flush();
          const alike = [0, 0, 0, 0];
          add_states(alike, segment, [window[0] + x * ns_per_x, window[0] + last * ns_per_x]);
          block(x, last - x, alike, (last - x) * ns_per_x);
          x = last;
        }
        if (x !== column) { flush(); column = x; }
        add_states(sums, segment, [window[0] + x * ns_per_x, window[0] + (x + 1) * ns_per_x]);
      }
    }
    flush();
    return paths;
  }

  const ORDERS = {
    waiting: ["Waited longest", () => 0],
    running: ["Ran longest", (a, b) => b.ns[RUNNING] + b.ns[GC] - a.ns[RUNNING] - a.ns[GC]],
    start: ["Started first", (a, b) => a.track.segments[0].from - b.track.segments[0].from],
  };

  function listed() {
    const order = ORDERS[view.order][1];
    const rows = [tracks, fibers].flatMap((list) =>
      state_rows(view.window, list).rows.filter((row) => row.track.segments).sort(order));
    return { tracks: rows.map((row) => row.track), all: rows.length };
  }

  function draw_axis() {
    const parts = [], [from, to] = view.window, tick = round_step((to - from) / Math.max(2, width / 120));
    for (let ns = Math.ceil(from / tick) * tick; ns <= to; ns += tick) {
      const x = x_of(ns), anchor = x < 30 ? "start" : x > width - 30 ? "end" : "middle";
      parts.push(svg("line", { class: "grid", x1: x, x2: x, y1: 0, y2: 4 }),
        svg("text", { x, y: 15, "text-anchor": anchor, text: axis_time(ns, tick) }));
    }
    return el("div", { class: "track axis" }, el("span", { class: "label" }),
      svg("svg", { width, height: AXIS, viewBox: `0 0 ${width} ${AXIS}`, "aria-hidden": "true" }, ...parts));
  }

  // A time with as many digits as tell ticks apart.
  function axis_time(ns, tick) {
    if (ns === 0) return "0";
    const end = view.window[1];
    const [unit, name] = end < 1e3 ? [1, "ns"] : end < 1e6 ? [1e3, "µs"] : end < 1e9 ? [1e6, "ms"] : [1e9, "s"];
    return `${(ns / unit).toFixed(Math.max(0, Math.min(9, Math.ceil(Math.log10(unit / tick) - 1e-9))))} ${name}`;
  }

  const summary = (track) => {
    if (track === pauses)
      return `GC pauses: ${time(name_rows([pauses], view.window, false).rows.reduce((sum, row) => sum + row.ns, 0))}`;
    const ns = [0, 0, 0, 0];
    for (const segment of within(track, view.window)) add_states(ns, segment, view.window);
    const states = [WAITING, BLOCKED, GC, RUNNING].filter((state) => ns[state] > 0);
    const names = track.fiber ? OF_FIBER : SHORT;
    return `${track.label}: ${states.map((state) => `${names[state]} ${time(ns[state])}`).join(", ")}`;
  };

  // Whether the search finds a thread, what it blocked in, or what it executed.
  function found(track) {
    const all = track.segments.flatMap((segment) => segment.names.map(([name]) => name));
    const names = new Set(all.filter((name) => name >= 0));
    const name_of = track === pauses ? timeline.reasons : timeline.names;
    const texts = [...names].map((name) => name_of[name].map((text) => S[text]).join(" "));
    const slices = track.slices.map(({ why, place }) => `${why} ${place}`);
    return [`${track.label || track.name} ${track.pid} ${track.tid}`, ...texts, ...slices].some(search.matches);
  }

  const height_of = (track) => (track.slices.length > 0 ? ROW + 1 + STRIP : ROW);

  function draw_track(track, row) {
    const title = track === pauses ? track.name : `${track.label}, pid ${track.pid}`;
    const paths = paths_of(track).map((d, state) => (d === "" ? null : svg("path", { class: `state${state}`, d })));
    const slices = cost.draw_slices(track.slices, view.window, width, ROW + 1, STRIP);
    const chosen = (row === view.row ? " chosen" : "") + (search.any() && found(track) ? " match" : "");
    const height = height_of(track);
    return el("div", { class: "track" + chosen, "data-row": row, role: "img", "aria-label": summary(track) },
      el("span", { class: "label", title, text: track.label || track.name }),
      svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, ...paths, ...slices));
  }

  let drawn = [];
  function draw_tracks() {
    const { tracks: list, all } = listed();
    const box = $("tracks");
    width = Math.max(160, Math.floor(box.clientWidth) - LABEL);
    drawn = [...(has_gc ? [pauses] : []), ...list.slice(0, view.shown)];
    if (view.row >= drawn.length) view.row = view.segment = -1;
    box.replaceChildren(draw_axis(), ...drawn.map(draw_track),
      el("div", { id: "chosen-segment", hidden: true }), el("div", { id: "selection", hidden: true }));
    mark_segment();
    $("tracks-more").hidden = all <= view.shown;
    const lanes = plural(all, has_fibers ? "lane" : "thread");
    $("tracks-more").textContent = `Show ${number(Math.min(50, all - view.shown))} more of ${lanes}`;
    const [from, to] = view.window;
    const times = `${axis_time(from, (to - from) / 1000)} to ${axis_time(to, (to - from) / 1000)}, ${time(to - from)}`;
    $("threads-window").textContent =
      is_whole() ? `${time(whole[1])}. Drag to zoom, double-click or Escape to go back.` : times;
    $("threads-back").hidden = !page_window.can_go_back();
    $("threads-whole").hidden = is_whole();
    const orders = has_threads || has_fibers ? Object.entries(ORDERS) : [];
    refill($("threads-order"), ...orders.map(([id, [title]]) => el("button", {
      type: "button",
      "aria-pressed": String(view.order === id),
      text: title,
      onclick() {
        view.order = id;
        view.row = view.segment = -1;
        draw_tracks();
      }
    })));
    const shown =
      [WAITING, BLOCKED, GC, RUNNING].filter((state) => (state === GC ? has_gc : has_threads || has_fibers));
    const legend_text = (state) => (!has_fibers || state === GC || state === RUNNING ? STATES[state]
      : has_threads ? `${STATES[state]} (a fiber: ${OF_FIBER[state]})` : OF_FIBER[state]);
    const legend_of = ([kind, text]) => el("li", {}, el("span", { class: `swatch ${kind}` }), text);
    $("threads-legend").replaceChildren(
      ...shown.map((state) => [`state${state}`, legend_text(state)]).map(legend_of),
      ...(has_slices ? SLICES : []).map(([kind, text]) => [`slice ${kind}`, text]).map(legend_of));
  }

  function draw() {
    draw_tracks();
    draw_tables();
  }

  // --- one segment -------------------------------------------------------------------------------------

  // What else ran in the ractor of a thread that waited.
  function ran_meanwhile(track, segment) {
    const list = tracks.filter((other) => other !== track && other.ractor === track.ractor).map((other) => {
      const ns = [0, 0, 0, 0];
      for (const meanwhile of within(other, [segment.from, segment.to]))
        add_states(ns, meanwhile, [segment.from, segment.to]);
      return { label: other.label, ns: ns[RUNNING] + ns[GC] };
    });
    return list.filter((other) => other.ns > 0).sort((a, b) => b.ns - a.ns).slice(0, 3);
  }

  // Lines about a segment; `sums` is for several in one column.
  function lines_of(track, segment) {
    if (segment.pieces > 1 || segment.ns !== null) {
      const lines = [
        `${plural(segment.pieces, track === pauses ? "pause" : "short state")} in ${time(segment.to - segment.from)}`
      ];
      for (const state of [WAITING, BLOCKED, GC, RUNNING])
        if (segment.ns[state] > 0) lines.push(`${state_name(track, state)} ${time(segment.ns[state])}`);
      return lines;
    }
    const lines = [];
    const [name] = segment.names;
    if (track === pauses) {
      const [kind, reason, major_by] =
        name && name[0] >= 0 ? timeline.reasons[name[0]].map((text) => S[text]) : ["GC", "", ""];
      lines.push(`${kind} ${time(segment.to - segment.from)}`,
        [reason, major_by].filter(Boolean).join(", "),
        `collected by ${segment.by || "a thread without a name"}`);
      return lines.filter(Boolean);
    }
    lines.push(`${state_name(track, segment.state)} ${time(segment.to - segment.from)}`);
    if (segment.state === BLOCKED) {
      if (name && name[0] >= 0)
        lines.push(`in ${S[timeline.names[name[0]][0]]}` +
          (S[timeline.names[name[0]][1]] ? `, ${S[timeline.names[name[0]][1]]}` : ""));
      if (segment.by !== null)
        lines.push(`${track.fiber ? "before it ran" : "woken by"} ${segment.by || "a thread without a name"}`);
    }
    if (segment.state === WAITING && !track.fiber)
      for (const other of ran_meanwhile(track, segment)) lines.push(`meanwhile ran ${other.label}: ${time(other.ns)}`);
    return lines;
  }

  // The segment at a place; of several in one column, their sums.
  function segment_at(track, x) {
    const column = Math.floor(x), from = ns_at(column), to = ns_at(column + 1), list = [...within(track, [from, to])];
    if (list.length < 2) return list[0];
    const ns = [0, 0, 0, 0];
    for (const segment of list) add_states(ns, segment, [from, to]);
    return { from, to, ns, pieces: list.reduce((sum, segment) => sum + segment.pieces, 0), names: [], by: null };
  }

  function mark_segment() {
    const mark = $("chosen-segment"), track = drawn[view.row], segment = track && track.segments[view.segment];
    mark.hidden = !segment;
    $("threads-detail").textContent = segment
      ? [`${track.label || track.name} at ${time(segment.from)}`, ...lines_of(track, segment)].join("; ")
      : view.row >= 0 ? summary(track) : "";
    if (!segment) return;
    const row = $("tracks").querySelector(`[data-row="${view.row}"]`);
    const x1 = Math.max(0, x_of(segment.from)), x2 = Math.min(width, x_of(segment.to));
    mark.style.cssText = `left:${LABEL + x1 - 1}px;width:${Math.max(3, x2 - x1 + 2)}px;` +
      `top:${row.offsetTop}px;height:${row.offsetHeight}px`;
  }

  function step_segment(step) {
    const track = drawn[view.row];
    if (!track) return;
    const first = first_after(track.segments, view.window[0]);
    const next = view.segment < 0 ? first : view.segment + step;
    const segment = track.segments[next];
    if (!segment || (view.segment < 0 && segment.from >= view.window[1])) return;
    view.segment = next;
    if (segment.to <= view.window[0] || segment.from >= view.window[1]) {
      const half = (view.window[1] - view.window[0]) / 2;
      set_window(segment.from - half, segment.from + half);
    } else mark_segment();
  }

  // --- input ---------------------------------------------------------------------------------------------

  function listen() {
    const box = $("tracks");
    let pressed = null;
    const place = (event) => event.clientX - box.getBoundingClientRect().left - LABEL;
    const select = (from, to) => {
      const mark = $("selection");
      mark.hidden = false;
      mark.style.cssText =
        `left:${LABEL + Math.max(0, Math.min(from, to))}px;width:${Math.abs(Math.min(width, to) - from)}px`;
    };
    box.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || place(event) < 0) return;
      pressed = place(event);
      box.setPointerCapture(event.pointerId);
    });
    box.addEventListener("pointermove", (event) => {
      const x = place(event);
      if (pressed !== null) { hide_tip(); if (Math.abs(x - pressed) > 3) select(pressed, Math.max(0, x)); return; }
      const row = event.target.closest("[data-row]"), track = row && drawn[row.dataset.row];
      const segment = track && x >= 0 && x < width ? segment_at(track, x) : null;
      if (!segment) { hide_tip(); return; }
      const [first, ...rest] = lines_of(track, segment), slice = cost.innermost_at(track.slices, ns_at(x));
      if (slice) rest.push(cost.line_of(slice));
      show_tip(event, el("strong", { text: track.label || track.name }), el("div", { text: first }),
        ...rest.map((line) => el("div", { class: "mono", text: line })),
        el("div", { class: "muted", text: `at ${time(ns_at(x))}` }));
    });
    box.addEventListener("pointerup", (event) => {
      const from = pressed, to = place(event);
      pressed = null;
      $("selection").hidden = true;
      if (from !== null && Math.abs(to - from) > 3) zoom(ns_at(Math.min(from, to)), ns_at(Math.max(from, to)));
    });
    box.addEventListener("pointercancel", () => { pressed = null; $("selection").hidden = true; });
    box.addEventListener("pointerleave", hide_tip);
    box.addEventListener("dblclick", back);
    box.addEventListener("keydown", (event) => {
      const [from, to] = view.window, length = to - from;
      const pan = (share) => {
        const shift = Math.max(whole[0] - from, Math.min(whole[1] - to, share * length));
        set_window(from + shift, to + shift);
      };
      const choose = (row) => {
        view.row = Math.max(0, Math.min(drawn.length - 1, row));
        view.segment = -1;
        draw_tracks();
      };
      const segment = drawn[view.row] && drawn[view.row].segments[view.segment];
      const does = {
        ArrowLeft: () => pan(-0.2),
        ArrowRight: () => pan(0.2),
        "+": () => zoom(from + length / 4, to - length / 4),
        "-": () => zoom(from - length / 2, to + length / 2),
        ArrowDown: () => choose(view.row + 1),
        ArrowUp: () => choose(view.row - 1),
        ".": () => step_segment(1),
        ",": () => step_segment(-1),
        Enter: () => segment &&
          zoom(segment.from - (segment.to - segment.from) / 10, segment.to + (segment.to - segment.from) / 10),
        Escape: back,
        Home: () => set_window(...whole),
      }[event.key];
      if (!does || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      does();
    });
    $("threads-back").addEventListener("click", back);
    $("threads-whole").addEventListener("click", () => set_window(...whole));
    $("tracks-more").addEventListener("click", () => { view.shown += 50; draw_tracks(); });
    addEventListener("resize", draw_tracks);
  }

  const any = has_threads || has_fibers || has_gc;
  $("threads").hidden = !any;
  if (any) {
    const lanes = [has_threads && "threads", has_fibers && "fibers"].filter(Boolean).join(" and ");
    $("threads-title").textContent = lanes ? lanes[0].toUpperCase() + lanes.slice(1) : "Garbage collection";
    listen();
    page_window.follow("threads", (window) => { view.window = window || whole; draw(); });
    search.follow(draw);
    draw();
  }
  // What the head of the page says.
  const sums = [0, 0, 0, 0];
  for (const row of state_rows(whole).rows) row.ns.forEach((ns, state) => { sums[state] += ns; });
  return {
    any, has_threads, has_fibers, has_gc, threads: tracks.length + timeline.left_out, waiting_ns: sums[WAITING],
    pause_ns: name_rows([pauses], whole, false).rows.reduce((sum, row) => sum + row.ns, 0),
  };
}
