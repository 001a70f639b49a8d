// Draws the page from the JSON in #data. Text of the trace is only set as textContent, never as markup.
//
//   files, events, exits, fallbacks, recorded, lost, exact_exits (of the summaries), ours, summarized, first_ns, span_ns, thread_count
//   strings    all texts; elsewhere a text is its number in this list
//   settings   [name, value]        losses  [reason, events]        threads  [pid, tid (0: shares native ones), name, events]
//   bins       width_ns, start_ns (from the first event), count
//   rows       [category, reason, frame, insn, outcome, places, count, first ns, last ns, [bin, count, bin, count ...]]
//              exits and fallbacks, largest first; if places is not 1, the row sums up that many, and frame is ""
//   compiling  as bins; compiles and compile_ns (of ISEQs), invalidations, ns (of all work of the compiler) [bin, ns ...], invalidated [bin, count ...]
//   timeline   threads over time: see threads.js
//   calls      methods and slices: see call_slices.js
//   cost, states, interpreted, gains, slices, lost_bins: see cost.js
//   sources    texts of files with exits: see sources.js
//   advised    [reason, is a fallback, number in advice]
//   advice     [meaning, causes, helps], not numbers but texts
//   stacks     [parent, text, exits, is a reason], each behind its parent; 0 is all
"use strict";
{
  const data = JSON.parse(document.getElementById("data").textContent);
  const S = data.strings;
  const COLORS = 10;
  const ROWS_AT_FIRST = 40;
  const $ = (id) => document.getElementById(id);

  // --- helpers -------------------------------------------------------------------------------

  function fill(node, properties, children) {
    for (const [name, value] of Object.entries(properties || {})) {
      if (value === undefined || value === false) continue;
      if (name === "class") node.setAttribute("class", value);
      else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (name === "text") node.textContent = value;
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }
  const el = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
  // A method and its place. Lines break at slashes and brackets, and within words only if they are too
  // long.
  const breakable = (text) => text.split(/(?=[/(])/).flatMap((part, i) => (i > 0 ? [el("wbr"), part] : [part]));
  const svg = (tag, properties, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);

  const number = (n) => Math.round(n).toLocaleString("en-US");
  const percent = (part, whole) => (whole === 0 ? "–" : (100 * part / whole).toFixed(part / whole < 0.0995 ? 2 : 1) + " %");
  const plural = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;
  function time(ns) {
    const size = Math.abs(ns);
    if (size < 1e3) return `${Math.round(ns)} ns`;
    const [unit, name] = size < 1e6 ? [1e3, "µs"] : size < 1e9 ? [1e6, "ms"] : [1e9, "s"];
    const value = ns / unit;
    return `${value.toFixed(Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0)} ${name}`;
  }
  // The smallest of 1, 2, 5, 10, 20 … that is at least this.
  function round_step(step) {
    const power = 10 ** Math.floor(Math.log10(step));
    return power * [1, 2, 5, 10].find((factor) => power * factor >= step * 0.9999);
  }

  function show_tip(event, ...content) {
    const tip = $("tip");
    tip.replaceChildren(...content);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const x = event.clientX + 14 + box.width > innerWidth ? event.clientX - box.width - 14 : event.clientX + 14;
    const y = event.clientY + 14 + box.height > innerHeight ? event.clientY - box.height - 14 : event.clientY + 14;
    tip.style.left = `${Math.max(4, x)}px`;
    tip.style.top = `${Math.max(4, y)}px`;
  }
  const hide_tip = () => { $("tip").hidden = true; };

  // The parts of `Foo#bar (/app/foo.rb:3)`. A name may contain "(2 levels)" or "(required)", a path anything.
  function label_parts(label) {
    const match = /^(.+?) \((?!\d+ levels\) in |required\)>)(.*)\)$/s.exec(label);
    if (!match) return { name: label, place: "", file: "" };
    return { name: match[1], place: match[2], file: match[2].replace(/:-?\d+$/, "") };
  }

  // The end of a long path; the tip shows all of it.
  const short_path = (path) => (path.length <= 44 ? path : path.replace(/^(<?).*?([^/]*\/[^/]*\/?[^/]*)$/, "$1…/$2"));

  // --- data and view -----------------------------------------------------------------------------

  // lost, longest and lost_cells are there if the trace has lost times: see cost.js.
  const rows = data.rows.map(([category, reason, frame, insn, outcome, places, count, first, last, cells,
    lost = 0, longest = 0, lost_cells = []]) => ({
    category: S[category], reason: S[reason], frame: S[frame], insn: S[insn], outcome: S[outcome],
    places, count, first, last, cells, lost, longest, lost_cells, fallback: S[category] === "fallback",
    method: label_parts(S[frame]).name, file: label_parts(S[frame]).file,
  }));
  for (const row of rows) {
    if (row.places !== 1) row.frame = row.method = row.file = row.places === 0 ? "(other places)" : `(${plural(row.places, "other place")})`;
    else if (row.frame === "") row.frame = row.method = "(no backtrace)";
    if (row.reason === "") row.reason = "(other reasons)";
  }

  const view = {
    fallbacks: data.exits === 0 && data.fallbacks > 0,
    window: null,        // [first bin, last bin], both included
    reasons: new Set(),  // empty: all
    group: "place", search: "", sort: data.cost ? "lost" : "count", descending: true, shown: ROWS_AT_FIRST,
  };
  let kind_rows, kind_total, reasons, color_of;

  function choose_kind(fallbacks) {
    view.fallbacks = fallbacks;
    view.reasons.clear();
    kind_rows = rows.filter((row) => row.fallback === fallbacks);
    kind_total = kind_rows.reduce((sum, row) => sum + row.count, 0);
    const by_reason = new Map();
    for (const row of kind_rows) by_reason.set(row.reason, (by_reason.get(row.reason) || 0) + row.count);
    reasons = [...by_reason].sort((a, b) => b[1] - a[1]).map(([reason]) => reason);
    color_of = new Map(reasons.map((reason, i) => [reason, Math.min(i, COLORS)]));
  }
  const word = () => (view.fallbacks ? "fallback" : "exit");
  const wanted = (row) => view.reasons.size === 0 || view.reasons.has(row.reason);

  function count_in_window(row) {
    if (!view.window) return row.count;
    let sum = 0;
    for (let i = 0; i < row.cells.length; i += 2) {
      if (row.cells[i] >= view.window[0] && row.cells[i] <= view.window[1]) sum += row.cells[i + 1];
    }
    return sum;
  }

  // The time that the exits of a row lost; in a window that of the recorded exits, times their weight.
  function lost_in_window(row) {
    if (!view.window) return row.lost;
    const from = bin_start(view.window[0]), to = bin_start(view.window[1] + 1);
    let sum = 0;
    for (let i = 0; i < row.lost_cells.length; i += 2) {
      const middle = data.lost_bins.start_ns + (row.lost_cells[i] + 0.5) * data.lost_bins.width_ns;
      if (middle >= from && middle < to) sum += row.lost_cells[i + 1];
    }
    return sum;
  }

  function update() {
    draw_kinds();
    draw_timeline();
    draw_legend();
    draw_table();
    draw_flame();
  }

  // --- head ------------------------------------------------------------------------------------------

  function draw_kinds() {
    const choice = (fallbacks, text, count) => el("button", {
      type: "button", "aria-pressed": String(view.fallbacks === fallbacks), text: `${text} ${number(count)}`,
      onclick() { choose_kind(fallbacks); update(); },
    });
    $("kinds").hidden = data.exits === 0 || data.fallbacks === 0;
    $("kinds").replaceChildren(choice(false, "Exits", data.exits), choice(true, "Fallbacks", data.fallbacks));
  }

  function draw_head() {
    const setting = (name) => { const found = data.settings.find(([key]) => S[key] === name); return found && S[found[1]]; };
    document.title = `${data.files.join(", ")} – vm-trace`;
    $("subtitle").textContent = setting("command") || data.files.join(", ");
    const tile = (name, value, bad) => [el("dt", { text: name }), el("dd", { text: value, class: bad ? "bad" : undefined })];
    if (!has_exits) $("title").textContent = calls.any ? "Calls" : threads.has_threads ? "Threads" : "Garbage collection";
    for (const id of ["timeline-section", "table-section", "flame-section"]) $(id).hidden = !has_exits;
    const tiles = has_exits ? [["Exits", number(data.exits)]] : [];
    if (data.fallbacks > 0) tiles.push(["Fallbacks", number(data.fallbacks)]);
    tiles.push(["Time span", time(data.span_ns)]);
    if (has_exits && data.span_ns > 0) tiles.push(["Exits a second", number(data.exits / data.span_ns * 1e9)]);
    if (has_exits) tiles.push(["Places", number(rows.reduce((sum, row) => sum + row.places, 0))]);
    if (data.recorded !== data.exits + data.fallbacks) tiles.push(["Recorded: counts are scaled", number(data.recorded)]);
    if (data.summarized && data.lost === 0 && data.exact_exits !== data.exits) tiles.push(["Exits, counted exactly", number(data.exact_exits)]);
    if (threads.has_threads)
      tiles.push(["Threads", number(threads.threads)], ["Waited for the GVL", time(threads.waiting_ns)]);
    if (calls.any) tiles.push(["Calls", number(data.calls.recorded)]);
    if (calls.any && data.calls.unrecorded > 0) tiles.push(["Calls not recorded", number(data.calls.unrecorded)]);
    if (threads.has_gc) tiles.push(["Paused by GC", time(threads.pause_ns)]);
    if (data.compiling.compiles > 0) tiles.push([plural(data.compiling.compiles, "compilation"), time(data.compiling.compile_ns)]);
    if (data.ours) tiles.push(["Lost events", data.lost > 0 ? number(data.lost) : data.summarized ? "none" : "none known", data.lost > 0]);
    $("tiles").replaceChildren(...tiles.map((one) => el("div", {}, ...tile(...one))));
    draw_findings();
  }

  function draw_findings() {
    const exits = rows.filter((row) => !row.fallback);
    const found = [];
    if (has_exits && !cost.timed && data.ours) {
      const option = el("code", { text: "--vm-trace=states" });
      found.push(["Counts are not cost; ", option, " records the time that exits lose."]);
    }
    const mono = (text) => el("span", { class: "mono", text });
    const top = exits.find((row) => row.places === 1);
    if (top && top.count / data.exits >= 0.1) {
      found.push([`${percent(top.count, data.exits)} of all exits are `, mono(top.reason), " in ", mono(top.frame), "."]);
    }
    const forever = exits.filter((row) => row.outcome === "version_limit");
    const forever_count = forever.reduce((sum, row) => sum + row.count, 0);
    if (forever_count > 0) {
      found.push([`${percent(forever_count, data.exits)} are recompile exits of methods that have all the versions they may have: they keep exiting there. Most: `,
        mono(forever[0].frame), "."]);
    }
    const quiet = data.bins.count > 20 ? exits.reduce((late, row) => Math.max(late, row.last), 0) / data.span_ns : 1;
    if (quiet < 0.5) found.push([`No exits after ${time(quiet * data.span_ns)}: the code has settled.`]);
    if (data.ours && !data.summarized) found.push(["The trace has no summary: its program still runs, or ended abruptly."]);
    if (has_exits && rows.length === 0) found.push(["There are no side exits in this trace."]);
    $("findings").replaceChildren(...found.map((parts) => el("li", {}, ...parts)));
  }

  // --- timeline --------------------------------------------------------------------------------------

  const HEIGHT = 200, LEFT = 64, BOTTOM = 22, TOP = 8, STRIP = 10;
  let plot_width = 0;
  const bins = data.bins;
  const bin_start = (bin) => bins.start_ns + bin * bins.width_ns;
  const x_of = (ns) => LEFT + (ns - bin_start(0)) / (bins.count * bins.width_ns) * plot_width;
  const bin_at = (x) => Math.max(0, Math.min(bins.count - 1, Math.floor((x - LEFT) / plot_width * bins.count)));

  // The counts of each bin, by color.
  function stacked() {
    const stacks = Array.from({ length: bins.count }, () => new Array(COLORS + 1).fill(0));
    for (const row of kind_rows) {
      if (!wanted(row)) continue;
      const color = color_of.get(row.reason);
      for (let i = 0; i < row.cells.length; i += 2) stacks[row.cells[i]][color] += row.cells[i + 1];
    }
    return stacks;
  }

  function draw_timeline() {
    $("window").textContent = "";
    $("window-clear").hidden = view.window === null;
    if (bins.count === 0 || kind_total === 0) {
      $("timeline").replaceChildren(el("p", { class: "empty", text: `No ${word()}s.` }));
      return;
    }
    const width = Math.max(320, $("timeline").clientWidth);
    plot_width = width - LEFT - 8;
    const stacks = stacked();
    const sums = stacks.map((stack) => stack.reduce((a, b) => a + b, 0));
    const [first, last] = view.window || [0, bins.count - 1];
    const most = Math.max(1, ...sums.slice(first, last + 1)); // what is higher outside of the window is cut off
    const has_strip = data.compiling.count > 0;
    const plot_height = HEIGHT - TOP - BOTTOM - (has_strip ? STRIP + 4 : 0);
    const y_of = (count) => TOP + plot_height * (1 - Math.min(1, count / most));
    const parts = [];

    const step = round_step(most / 4);
    for (let count = step; count <= most && step >= 1; count += step) {
      parts.push(svg("line", { class: "grid", x1: LEFT, x2: LEFT + plot_width, y1: y_of(count), y2: y_of(count) }),
        svg("text", { x: LEFT - 8, y: y_of(count) + 4, "text-anchor": "end", text: number(count) }));
    }
    const from = bin_start(0), to = bin_start(bins.count);
    const tick = round_step((to - from) / Math.max(2, plot_width / 120));
    for (let ns = Math.ceil(from / tick) * tick; ns <= to; ns += tick) {
      parts.push(svg("line", { class: "grid", x1: x_of(ns), x2: x_of(ns), y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 4 }),
        svg("text", { x: x_of(ns), y: HEIGHT - 5, "text-anchor": "middle", text: ns === 0 ? "0" : time(ns) }));
    }
    parts.push(svg("line", { class: "grid", x1: LEFT, x2: LEFT + plot_width, y1: TOP + plot_height, y2: TOP + plot_height }));

    const bar_width = plot_width / bins.count;
    const gap = bar_width > 3 ? 0.6 : 0;
    for (let color = 0; color <= COLORS; color++) { // one path for each color
      let path = "";
      stacks.forEach((stack, bin) => {
        if (stack[color] === 0) return;
        let below = 0;
        for (let i = 0; i < color; i++) below += stack[i];
        const top = y_of(below + stack[color]), bottom = y_of(below);
        path += `M${(LEFT + bin * bar_width).toFixed(2)} ${top.toFixed(2)}h${(bar_width - gap).toFixed(2)}V${bottom.toFixed(2)}h${(gap - bar_width).toFixed(2)}z`;
      });
      if (path !== "") parts.push(svg("path", { class: `k${color}`, d: path }));
    }
    if (has_strip) draw_compiling(parts, TOP + plot_height + 4);
    if (view.window) {
      const x1 = x_of(bin_start(view.window[0])), x2 = x_of(bin_start(view.window[1] + 1));
      parts.push(svg("rect", { class: "window", x: x1, width: Math.max(1, x2 - x1), y: TOP, height: plot_height }));
    }
    const cursor = svg("rect", { class: "cursor", y: TOP, height: plot_height, width: Math.max(1, bar_width), x: -99 });
    parts.push(cursor);
    $("timeline").replaceChildren(svg("svg", { height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" }, ...parts));
    $("timeline").cursor = cursor;
    $("timeline").stacks = stacks;

    const sum = sums.slice(first, last + 1).reduce((a, b) => a + b, 0);
    $("window").textContent = view.window
      ? `${time(bin_start(first))} to ${time(bin_start(last + 1))}: ${plural(sum, word())}`
      : `${plural(sum, word())}, ${time(bins.width_ns)} a bar. Drag to choose a window.`;
  }

  // Below the bars: how much of the time was spent compiling, and where versions were invalidated.
  function draw_compiling(parts, y) {
    const compiling = data.compiling;
    const start = (bin) => compiling.start_ns + bin * compiling.width_ns;
    const clip = (x) => Math.max(LEFT, Math.min(LEFT + plot_width, x));
    const strip = (bin, properties) => {
      const x1 = clip(x_of(start(bin))), x2 = clip(x_of(start(bin + 1)));
      if (x2 > x1) parts.push(svg("rect", { x: x1, width: Math.max(1, x2 - x1), ...properties }));
    };
    parts.push(svg("text", { x: LEFT - 8, y: y + STRIP - 1, "text-anchor": "end", text: "compiling" }));
    for (let i = 0; i < compiling.ns.length; i += 2) {
      strip(compiling.ns[i], { class: "compiling", y, height: STRIP, opacity: Math.min(1, 0.15 + compiling.ns[i + 1] / compiling.width_ns).toFixed(2) });
    }
    for (let i = 0; i < compiling.invalidated.length; i += 2) strip(compiling.invalidated[i], { class: "invalidation", y: y + STRIP - 3, height: 3 });
  }

  function tip_of_bin(event, bin) {
    const stack = $("timeline").stacks[bin];
    const lines = stack.map((count, color) => ({ count, color })).filter((line) => line.count > 0).sort((a, b) => b.count - a.count);
    const sum = lines.reduce((all, line) => all + line.count, 0);
    show_tip(event, el("strong", { text: `${time(bin_start(bin))}: ${plural(sum, word())}` }), el("table", {}, ...lines.map((line) => el("tr", {},
      el("td", {}, el("span", { class: `swatch k${line.color}` })),
      el("td", { class: "mono", text: line.color === COLORS ? "other reasons" : reasons[line.color] }),
      el("td", { class: "number", text: number(line.count) })))));
  }

  // followed: the window is that of the page; otherwise it becomes that.
  function choose_window(a, b, followed, moving) {
    view.window = a === null || (Math.min(a, b) === 0 && Math.max(a, b) === bins.count - 1) ? null : [Math.min(a, b), Math.max(a, b)];
    view.shown = ROWS_AT_FIRST;
    draw_timeline();
    draw_legend();
    draw_table();
    if (followed) return;
    if (view.window) page_window.set(bin_start(view.window[0]), bin_start(view.window[1] + 1), { from: "exits", moving });
    else page_window.set(...page_window.whole, { from: "exits", moving });
  }

  function listen_to_timeline() {
    const timeline = $("timeline");
    let pressed = null;
    const bin_of = (event) => bin_at(event.clientX - timeline.getBoundingClientRect().left);
    timeline.addEventListener("pointerdown", (event) => {
      if (kind_total === 0) return;
      pressed = bin_of(event);
      timeline.setPointerCapture(event.pointerId);
    });
    timeline.addEventListener("pointermove", (event) => {
      if (kind_total === 0) return;
      const bin = bin_of(event);
      if (pressed !== null && bin !== pressed) choose_window(pressed, bin, false, true);
      timeline.cursor.setAttribute("x", x_of(bin_start(bin)));
      tip_of_bin(event, bin);
    });
    timeline.addEventListener("pointerup", (event) => {
      if (pressed !== null && bin_of(event) === pressed) choose_window(null); // a click
      else if (pressed !== null) choose_window(pressed, bin_of(event));
      pressed = null;
    });
    timeline.addEventListener("pointercancel", () => { pressed = null; });
    timeline.addEventListener("pointerleave", () => {
      hide_tip();
      if (timeline.cursor) timeline.cursor.setAttribute("x", -99);
    });
    timeline.addEventListener("keydown", (event) => {
      if (kind_total === 0) return;
      let [first, last] = view.window || [-1, -1];
      const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
      if (event.key === "Escape") { choose_window(null); return; }
      if (step === 0) return;
      event.preventDefault();
      const part = Math.max(1, Math.round(bins.count / 20));
      if (first < 0) [first, last] = step > 0 ? [0, part - 1] : [bins.count - part, bins.count - 1];
      else if (event.shiftKey) last = Math.max(first, Math.min(bins.count - 1, last + step * part));
      else {
        const shift = Math.max(-first, Math.min(bins.count - 1 - last, step * part));
        [first, last] = [first + shift, last + shift];
      }
      choose_window(first, last);
    });
    $("window-clear").addEventListener("click", () => choose_window(null));
    addEventListener("resize", () => { draw_timeline(); draw_flame(); });
  }

  let all_reasons_listed = false;
  function draw_legend() {
    const sums = new Map(reasons.map((reason) => [reason, 0]));
    for (const row of kind_rows) sums.set(row.reason, sums.get(row.reason) + count_in_window(row));
    const total = [...sums.values()].reduce((a, b) => a + b, 0);
    const listed = all_reasons_listed ? reasons : reasons.filter((reason, i) => i < COLORS || view.reasons.has(reason));
    const buttons = listed.map((reason) => el("li", {}, el("button", {
      type: "button", "aria-pressed": String(view.reasons.has(reason)), title: reason,
      onclick() {
        if (!view.reasons.delete(reason)) view.reasons.add(reason);
        view.shown = ROWS_AT_FIRST;
        update();
      },
    }, el("span", { class: `swatch k${color_of.get(reason)}` }), el("span", { class: "label", text: reason }),
    el("span", { class: "muted", text: `${number(sums.get(reason))} · ${percent(sums.get(reason), total)}` }))));
    if (reasons.length > listed.length) {
      buttons.push(el("li", {}, el("button", { type: "button", text: `${plural(reasons.length - listed.length, "more reason")}`,
        onclick() { all_reasons_listed = true; draw_legend(); } })));
    }
    if (view.reasons.size > 0) {
      buttons.push(el("li", {}, el("button", { type: "button", text: "All reasons", onclick() { view.reasons.clear(); update(); } })));
    }
    const focused = [...$("legend").querySelectorAll("button")].indexOf(document.activeElement);
    $("legend").replaceChildren(...buttons);
    if (focused >= 0) ($("legend").querySelectorAll("button")[focused] || $("legend").querySelector("button")).focus();
  }

  // --- table -------------------------------------------------------------------------------------------

  const GROUPS = {
    place: { title: "Place", columns: ["count", "share", "method", "reason", "insn", "outcome", "trend"] },
    method: { title: "Method", columns: ["count", "share", "method", "reasons", "trend"], key: (row) => row.method },
    file: { title: "File", columns: ["count", "share", "file", "reasons", "trend"], key: (row) => row.file || row.frame },
    reason: { title: "Reason", columns: ["count", "share", "reason", "methods", "trend"], key: (row) => row.reason },
    insn: { title: "Instruction", columns: ["count", "share", "insn", "reasons", "trend"], key: (row) => row.insn },
  };
  // With lost times tables begin with them; fallbacks lose none.
  const lost_first = () => data.cost !== undefined && !view.fallbacks;
  const LOST_COLUMNS = ["lost", "lost_share", "longest"];
  const columns_of = ({ columns }) =>
    (lost_first() ? [...LOST_COLUMNS, ...columns.filter((name) => name !== "share")] : columns);
  const COLUMNS = {
    lost: { title: "Lost", number: true, value: (item) => item.lost },
    lost_share: { title: "Share", value: (item) => item.lost },
    longest: { title: "Longest", number: true, value: (item) => item.longest },
    count: { title: "Count", number: true, value: (item) => item.count },
    share: { title: "Share", value: (item) => item.count },
    method: { title: "Method", value: (item) => item.row.frame },
    file: { title: "File", value: (item) => item.row.file || item.row.frame },
    reason: { title: "Reason", value: (item) => item.row.reason },
    insn: { title: "Instruction", value: (item) => item.row.insn },
    outcome: { title: "Outcome", value: (item) => item.row.outcome },
    reasons: { title: "Reasons", value: (item) => [...item.others.keys()][0] || "" },
    methods: { title: "Methods", number: true, value: (item) => item.others.size },
    trend: { title: "Over time", value: (item) => item.first },
  };
  // Sorted from the largest down by the first click.
  const LARGEST_FIRST = ["lost", "lost_share", "longest", "count", "share", "methods"];

  function matching_items() {
    const { key } = GROUPS[view.group];
    const terms = view.search.toLowerCase().split(/\s+/).filter(Boolean);
    const items = new Map();
    kind_rows.forEach((row, i) => {
      if (!wanted(row)) return;
      const text = `${row.frame} ${row.reason} ${row.insn} ${row.outcome}`.toLowerCase();
      if (!terms.every((term) => text.includes(term))) return;
      const count = count_in_window(row);
      const lost = lost_in_window(row);
      if (count === 0 && lost === 0) return;
      const id = key ? key(row) : i;
      let item = items.get(id);
      if (!item) {
        item = { id, row, rows: [], count: 0, lost: 0, longest: 0, first: Infinity, others: new Map() };
        items.set(id, item);
      }
      item.rows.push(row);
      item.count += count;
      item.lost += lost;
      item.longest = Math.max(item.longest, row.longest);
      item.first = Math.min(item.first, row.first);
      const other = view.group === "reason" ? row.method : row.reason;
      item.others.set(other, (item.others.get(other) || 0) + (lost_first() ? lost : count));
    });
    return [...items.values()];
  }

  function sorted(items) {
    const { value } = COLUMNS[view.sort];
    const order = view.descending ? -1 : 1;
    return items.sort((a, b) => {
      const x = value(a), y = value(b);
      return (x < y ? -order : x > y ? order : 0) || b.lost - a.lost || b.count - a.count;
    });
  }

  const TREND_WIDTH = 90, TREND_HEIGHT = 18;
  function trend(item) {
    const points = 30, sums = new Array(points).fill(0);
    for (const row of item.rows) {
      for (let i = 0; i < row.cells.length; i += 2) sums[Math.floor(row.cells[i] * points / bins.count)] += row.cells[i + 1];
    }
    const most = Math.max(1, ...sums);
    const path = sums.map((sum, i) => (sum === 0 ? "" : `M${i * 3} ${TREND_HEIGHT}v${-Math.max(1, sum / most * TREND_HEIGHT).toFixed(1)}`)).join("");
    return el("td", { class: "trend", title: `from ${time(item.first)} on` },
      svg("svg", { width: TREND_WIDTH, height: TREND_HEIGHT, viewBox: `-1 0 ${TREND_WIDTH} ${TREND_HEIGHT}`, role: "img", "aria-label": `from ${time(item.first)} on` },
        svg("path", { d: path, stroke: "currentColor", "stroke-width": 2, fill: "none" })));
  }

  const reason_line = (reason, more) => el("div", { title: advice_title(reason) },
    el("span", { class: `swatch k${color_of.get(reason)}` }), el("span", { text: reason }), more);

  // --- advice for reasons

  const advice = new Map(data.advised.map(([reason, fallback, n]) => [`${fallback} ${S[reason]}`, data.advice[n]]));
  const advice_of = (reason) => advice.get(`${view.fallbacks ? 1 : 0} ${reason}`);
  const ADVICE_LABELS = ["Meaning", "Usual causes", "What helps"];
  function advice_title(reason) {
    const texts = advice_of(reason);
    return texts && texts.map((text, i) => `${ADVICE_LABELS[i]}: ${text}`).join("\n");
  }

  // Text with code between backticks.
  const with_code = (text) => text.split("`").map((part, i) => (i % 2 === 0 ? part : el("code", { text: part })));

  // A reason that shows its advice when it is opened. It stays open when the table is drawn again.
  const explained = new Set();
  function reason_details(reason) {
    const texts = advice_of(reason);
    if (!texts) return reason_line(reason);
    return el("details", { class: "advice", open: explained.has(reason),
      ontoggle(event) { if (event.target.open) explained.add(reason); else explained.delete(reason); } },
    el("summary", {}, reason_line(reason)),
    ...texts.map((text, i) => el("p", {}, el("b", { text: `${ADVICE_LABELS[i]}: ` }), ...with_code(text))));
  }

  // The share of a number, with a bar that is full for the largest one in the table.
  const share_cell = (n, most, total) => el("td", { class: "share" },
    el("span", { class: "bar", style: `width:${(60 * n / most).toFixed(1)}px` }), percent(n, total));
  const number_cell = (text, title) => el("td", { class: "number", title, text });

  let total_lost = 0, most_lost = 1; // of the table

  function cell(name, item, total, most) {
    const row = item.row;
    switch (name) {
      case "lost": return number_cell(time(item.lost));
      case "lost_share": return share_cell(item.lost, most_lost, total_lost);
      case "longest": return number_cell(item.longest > 0 && !view.window ? time(item.longest) : "");
      case "count":
        return item.count === 0 ? number_cell("–", "none was recorded") : number_cell(number(item.count));
      case "share": return share_cell(item.count, most, total);
      case "method": {
        const { name: method, place } = label_parts(row.frame);
        const lines = view.group === "place" ? place : label_parts(row.frame).file;
        return el("td", { class: "name", title: row.frame }, method, lines ? " " : null,
          lines ? sources.place_link(lines, short_path(lines)) : null);
      }
      case "file": return el("td", { class: "name", text: row.file || row.frame });
      case "reason": return el("td", { class: "reason" }, reason_details(row.reason));
      case "insn": return el("td", { class: "small", text: row.insn });
      case "outcome": return el("td", { class: row.outcome === "version_limit" ? "small forever" : "small", text: row.outcome.replaceAll("_", " ") });
      case "reasons": {
        const parts = [...item.others].sort((a, b) => b[1] - a[1]), of = lost_first() ? item.lost : item.count;
        const lines = parts.slice(0, 3).map(([reason, count]) =>
          reason_line(reason, el("span", { class: "muted", text: percent(count, of) })));
        const more = parts.length > 3 ? el("div", { class: "muted", text: `and ${parts.length - 3} more` }) : null;
        return el("td", { class: "reason" }, ...lines, more);
      }
      case "methods": return number_cell(number(item.others.size));
      case "trend": return trend(item);
    }
  }

  // What the rows of the table add up to.
  function sum_text(items, sum, total) {
    const part = sum === total ? "" : `, ${percent(sum, total)} of all in the window`;
    return `${plural(items.length, "row")}: ${plural(sum, word())}${part}${lost_text(items)}`;
  }

  function lost_text(items) {
    if (!lost_first()) return "";
    const lost = time(items.reduce((all, item) => all + item.lost, 0));
    const estimated = view.window || !data.cost.exact;
    return estimated ? `; about ${lost} lost, by the recorded exits` : `; ${lost} lost`;
  }

  function draw_table() {
    const columns = columns_of(GROUPS[view.group]), by_default = lost_first() ? "lost" : "count";
    if (!columns.includes(view.sort)) view.sort = by_default;
    $("groups").replaceChildren(...Object.entries(GROUPS).map(([name, group]) => el("button", {
      type: "button", "aria-pressed": String(view.group === name), text: group.title,
      onclick() {
        Object.assign(view, { group: name, shown: ROWS_AT_FIRST, sort: by_default, descending: true });
        draw_table();
      },
    })));

    const focused = document.activeElement && document.activeElement.dataset.column;
    $("table-head").replaceChildren(el("tr", {}, ...columns.map((name) => {
      const column = COLUMNS[name], sorting = view.sort === name;
      return el("th", { scope: "col", class: column.number ? "number" : undefined, "aria-sort": sorting ? (view.descending ? "descending" : "ascending") : undefined },
        el("button", { type: "button", "data-column": name, onclick() {
          view.descending = sorting ? !view.descending : LARGEST_FIRST.includes(name);
          view.sort = name;
          draw_table();
        } }, column.title, el("span", { class: "arrow", "aria-hidden": "true", text: sorting ? (view.descending ? "▾" : "▴") : "" })));
    })));
    if (focused) { const again = $("table-head").querySelector(`[data-column="${focused}"]`); if (again) again.focus(); }

    const items = sorted(matching_items());
    const total = kind_rows.reduce((sum, row) => sum + count_in_window(row), 0);
    const sum = items.reduce((all, item) => all + item.count, 0);
    const most = Math.max(1, ...items.map((item) => item.count));
    total_lost = kind_rows.reduce((all, row) => all + lost_in_window(row), 0);
    most_lost = Math.max(1, ...items.map((item) => item.lost));
    $("table-sum").textContent = items.length === 0 ? "Nothing matches." : sum_text(items, sum, total);
    $("table-body").replaceChildren(...items.slice(0, view.shown).map((item) => el("tr", {}, ...columns.map((name) => cell(name, item, total, most)))));
    $("table-more").hidden = items.length <= view.shown;
    $("table-more").textContent = `Show ${number(Math.min(items.length - view.shown, 200))} more of ${number(items.length)}`;
  }

  function listen_to_table() {
    $("table-search").addEventListener("input", (event) => {
      view.search = event.target.value;
      view.shown = ROWS_AT_FIRST;
      draw_table();
    });
    $("table-more").addEventListener("click", () => { view.shown += 200; draw_table(); });
  }

  // --- flame graph ---------------------------------------------------------------------------------------

  const nodes = flame_nodes(data.stacks.map(([parent, text, total, why], index) => ({
    parent, text: index === 0 ? "all exits" : S[text], total, why: why === 1,
  })));

  // With reasons chosen, a frame is as wide as the exits for these reasons; otherwise as all exits that passed through it.
  function weigh() {
    const all = view.reasons.size === 0 || view.fallbacks;
    for (const node of nodes) node.value = all || (node.why && view.reasons.has(node.text)) ? node.total : 0;
    if (!all) for (const node of nodes.slice(1).reverse()) if (node.value > 0) nodes[node.parent].value += node.value;
  }

  const flame = flame_view({
    id: "flame", nodes, $, el, show_tip, hide_tip,
    empty: "No exits with a backtrace.",
    class_of(node) {
      if (node.why) return `why k${color_of.has(node.text) ? color_of.get(node.text) : COLORS}`;
      return /\((<cfunc>|<internal:.*)\)$|^\(more frames\)$/.test(node.text) ? "native" : "";
    },
    name_of: (node) => (node.why ? node.text : label_parts(node.text).name),
    describe: (node) => `${node.text}  ${plural(node.value, "exit")}, ${percent(node.value, nodes[0].value)}`,
    tip_of: (node, root) => [`${plural(node.value, "exit")}, ${percent(node.value, nodes[0].value)} of all` +
      (root.index !== 0 && node.depth > root.depth ? `, ${percent(node.value, root.value)} of what is shown` : "")],
    sum_of: (matched) => (matched !== null ? `${percent(matched, nodes[0].value)} of the exits pass through matching frames`
      : `${plural(nodes[0].value, "exit")} by backtrace` +
        (data.stacks_left_out > 0 ? `; ${plural(data.stacks_left_out, "small node")} left out` : "") +
        (view.window ? "; for the whole trace, not the window" : "")),
  });

  function draw_flame() {
    weigh();
    flame.draw();
  }

  // --- the trace itself ------------------------------------------------------------------------------------

  function draw_about() {
    const list = (title, pairs) => el("div", {}, el("h3", { text: title }),
      el("dl", {}, ...pairs.flatMap(([name, value]) => [el("dt", { text: name }), el("dd", { text: value })])));
    const about = [list("Settings", [["file", data.files.join(", ")], ...data.settings.map(([name, value]) => [S[name], S[value]])])];
    const facts = [["events", number(data.events)], ["first event", `${(data.first_ns / 1e9).toFixed(6)} s after the system started`],
      ["time span", time(data.span_ns)]];
    for (const [reason, events] of data.losses) facts.push(["lost", `${plural(events, "event")}: ${S[reason] || "no reason recorded"}`]);
    if (data.losses.length === 0) facts.push(["lost", data.lost > 0 ? plural(data.lost, "event") : "nothing known"]);
    about.push(list("Facts", facts));
    const threads = data.threads.slice().sort((a, b) => b[3] - a[3]);
    const listed = threads.slice(0, 20).map(([pid, tid, name, events]) => [tid ? `${pid} / ${tid}` : `${pid}`, `${S[name] || "(no name)"}: ${plural(events, "event")}`]);
    if (data.thread_count > 20) listed.push(["", `and ${number(data.thread_count - 20)} more`]);
    about.push(list("Threads", listed));
    $("about").replaceChildren(...about);
  }

  const sources = sources_view({ data, S, $, el, number, plural, time });
  const page_window = shared_window(data.span_ns);
  const cost = cost_view({ data, S, $, el, breakable, svg, number, percent, plural, time });
  const threads = threads_view({
    data, S, $, el, svg, number, percent, plural, time, round_step, show_tip, hide_tip, cost, page_window,
  });
  const calls = calls_view({
    data, S, $, el, number, percent, plural, time, round_step, show_tip, hide_tip, label_parts, short_path, sources,
    page_window,
  });
  page_window.follow("exits", (window) => {
    if (bins.count === 0) return;
    const bin = (ns) => Math.max(0, Math.min(bins.count - 1, Math.floor((ns - bins.start_ns) / bins.width_ns)));
    if (window) choose_window(bin(window[0]), bin(window[1] - 1), true); else choose_window(null, null, true);
  });
  const has_exits = rows.length > 0 || (!threads.any && !calls.any);
  choose_kind(view.fallbacks);
  draw_head();
  draw_about();
  listen_to_timeline();
  listen_to_table();
  update();
}
