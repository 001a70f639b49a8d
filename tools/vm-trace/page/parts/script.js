// Draws the page from the JSON in #data. Text of the trace is only set as textContent, never as markup.
//
//   files, events, exits, fallbacks, recorded, lost, exact_exits (of the summaries), ours, summarized, first_ns, span_ns, thread_count
//   strings    all texts; elsewhere a text is its number in this list
//   stopped    a file was not read to its end; cut: it is a part of a trace; partial: texts about what was not read
//   processes  [pid, where it was recorded, if others have its pid]; elsewhere a process is its number in this list
//   settings   [name, value]        losses  [reason, events]
//   threads    [process, tid (0: shares native ones), name, events]
//   bins       what follows the window: see bins.js. A "number" is one of it.
//   rows       [category, reason, frame, insn, outcome, places, count, first ns, last ns, number of the count]
//              exits and fallbacks, largest first; if places is not 1, the row sums up that many, and frame is ""
//   compiling  compiles and compile_ns (of ISEQs), invalidations; numbers: ns (of all work of the compiler),
//              invalidated
//   timeline   threads over time: see threads.js
//   calls      methods and slices: see call_slices.js
//   syscalls, syscall_methods, cpus, cpu_others: see kernel.js
//   sample_states, sampled …: see samples.js
//   first: see first.js
//   cost, states, interpreted, slices, lost_bins: see cost.js
//   code       texts of compiled versions: see code.js
//   sources    texts of files with exits: see sources.js
//   advised    [reason, is a fallback, number in advice]
//   advice     [meaning, causes, helps], not numbers but texts
//   stacks     [parent, text, exits, is a reason, number of the exits that end there], each behind its parent; 0 is all
"use strict";
{
  const data = JSON.parse(document.getElementById("data").textContent);
  const S = data.strings;
  const COLORS = 10;
  const ROWS_AT_FIRST = 40;
  const {
    $, el, breakable, svg, number, percent, plural, time, time_column, with_times, round_step, show_tip, hide_tip,
    label_parts, short_path, label_threads, with_code,
  } = page_helpers();
  data.processes = data.processes.map(([pid, place]) => ({ pid, place, text: place ? `${pid} (${place})` : `${pid}` }));

  // --- data and view -----------------------------------------------------------------------------

  const page_window = shared_window(data.span_ns);
  const bins = bins_of({ data, page_window, time });
  const search = page_search($);
  const tabs = page_tabs({ $, el, search });

  // lost and longest are there if the trace has lost times: see cost.js.
  const rows = data.rows.map(([category, reason, frame, insn, outcome, places, count, first, last, counts,
    lost = 0, longest = 0]) => ({
    category: S[category], reason: S[reason], frame: S[frame], insn: S[insn], outcome: S[outcome],
    places, count, first, last, counts, lost, longest, fallback: S[category] === "fallback",
    method: label_parts(S[frame]).name, file: label_parts(S[frame]).file,
  }));
  for (const row of rows) {
    if (row.places !== 1) row.frame = row.method = row.file = row.places === 0 ? "(other places)" : `(${plural(row.places, "other place")})`;
    else if (row.frame === "") row.frame = row.method = "(no backtrace)";
    if (row.reason === "") row.reason = "(other reasons)";
    row.text = `${row.frame} ${row.reason} ${row.insn} ${row.outcome}`;
  }

  const view = {
    fallbacks: data.exits === 0 && data.fallbacks > 0,
    reasons: new Set(),  // empty: all
    group: "place", sort: data.cost ? "lost" : "count", descending: true, shown: ROWS_AT_FIRST,
  };
  let kind_rows, kind_total, summed_places, reasons, color_of;

  function choose_kind(fallbacks) {
    view.fallbacks = fallbacks;
    view.reasons.clear();
    kind_rows = rows.filter((row) => row.fallback === fallbacks);
    kind_total = kind_rows.reduce((sum, row) => sum + row.count, 0);
    summed_places = kind_rows.reduce((sum, row) => sum + (row.places === 1 ? 0 : row.places), 0);
    const by_reason = new Map();
    for (const row of kind_rows) by_reason.set(row.reason, (by_reason.get(row.reason) || 0) + row.count);
    reasons = [...by_reason].sort((a, b) => b[1] - a[1]).map(([reason]) => reason);
    color_of = new Map(reasons.map((reason, i) => [reason, Math.min(i, COLORS)]));
  }
  const word = () => (view.fallbacks ? "fallback" : "exit");
  const found = (row) => search.matches(row.text);
  const wanted = (row) => (view.reasons.size === 0 || view.reasons.has(row.reason)) && found(row);

  // The time that the exits of a row lost is in a window that of the recorded ones, times their weight. See cost.js.
  const count_in_window = (row) => (bins.range() ? bins.sum(row.counts) : row.count);
  const lost_in_window = (row) => (bins.range() ? bins.sum(row.counts + 1) : row.lost);
  const longest_in_window = (row) => (bins.range() ? bins.longest(row.counts + 2) : row.longest);

  function draw_exits() {
    draw_timeline();
    draw_legend();
    draw_table();
  }

  function update() {
    view.shown = ROWS_AT_FIRST;
    draw_kinds();
    draw_exits();
    draw_flame();
  }

  // --- head ------------------------------------------------------------------------------------------

  function draw_kinds() {
    const choice = (fallbacks, text, count) => el("button", {
      type: "button", "aria-pressed": String(view.fallbacks === fallbacks), text: `${text} ${number(count)}`,
      onclick() { choose_kind(fallbacks); update(); },
    });
    $("kinds").hidden = data.exits === 0 || data.fallbacks === 0;
    refill($("kinds"), choice(false, "Exits", data.exits), choice(true, "Fallbacks", data.fallbacks));
  }

  // --- timeline --------------------------------------------------------------------------------------

  const HEIGHT = 200, LEFT = 64, BOTTOM = 22, TOP = 8, STRIP = 10;
  let plot_width = 0;
  const bin_start = bins.start;
  const x_of = (ns) => LEFT + (ns - bin_start(0)) / (bins.count * bins.width_ns) * plot_width;
  const bin_at = (x) => Math.max(0, Math.min(bins.count - 1, Math.floor((x - LEFT) / plot_width * bins.count)));

  // The counts of each bin, by color.
  function stacked() {
    const stacks = Array.from({ length: bins.count }, () => new Array(COLORS + 1).fill(0));
    for (const row of kind_rows) {
      if (!wanted(row)) continue;
      const color = color_of.get(row.reason);
      bins.each(row.counts, (bin, count) => { stacks[bin][color] += count; }, [0, bins.count - 1]);
    }
    return stacks;
  }

  function draw_timeline() {
    $("window").textContent = "";
    $("window-clear").hidden = bins.range() === null;
    if (bins.count === 0 || kind_total === 0) {
      $("timeline").replaceChildren(el("p", { class: "empty", text: `No ${word()}s.` }));
      return;
    }
    const width = Math.max(320, $("timeline").clientWidth);
    plot_width = width - LEFT - 8;
    const stacks = stacked();
    const sums = stacks.map((stack) => stack.reduce((a, b) => a + b, 0));
    const first = bins.first(), last = bins.last();
    const most = Math.max(1, ...sums.slice(first, last + 1)); // what is higher outside of the window is cut off
    const has_strip = data.compiling.ns > 0 || data.compiling.invalidated > 0;
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
      const x = x_of(ns), anchor = x > LEFT + plot_width - 24 ? "end" : "middle";
      parts.push(svg("line", { class: "grid", x1: x, x2: x, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 4 }),
        svg("text", { x, y: HEIGHT - 5, "text-anchor": anchor, text: ns === 0 ? "0" : time(ns) }));
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
    if (bins.range()) {
      const x1 = x_of(bin_start(first)), x2 = x_of(bin_start(last + 1));
      parts.push(svg("rect", { class: "window", x: x1, width: Math.max(1, x2 - x1), y: TOP, height: plot_height }));
    }
    const cursor = svg("rect", { class: "cursor", y: TOP, height: plot_height, width: Math.max(1, bar_width), x: -99 });
    parts.push(cursor);
    $("timeline").replaceChildren(svg("svg", { height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-hidden": "true" }, ...parts));
    $("timeline").cursor = cursor;
    $("timeline").stacks = stacks;

    const sum = sums.slice(first, last + 1).reduce((a, b) => a + b, 0);
    $("window").textContent = bins.range()
      ? `${time(bin_start(first))} to ${time(bin_start(last + 1))}: ${plural(sum, word())}`
      : `${plural(sum, word())}, ${time(bins.width_ns)} a bar. Drag to choose a window.`;
  }

  // Below the bars: how much of the time was spent compiling, and where versions were invalidated.
  function draw_compiling(parts, y) {
    const compiling = data.compiling;
    const clip = (x) => Math.max(LEFT, Math.min(LEFT + plot_width, x)), all = [0, bins.count - 1];
    const strip = (bin, properties) => {
      const x1 = clip(x_of(bin_start(bin))), x2 = clip(x_of(bin_start(bin + 1)));
      if (x2 > x1) parts.push(svg("rect", { x: x1, width: Math.max(1, x2 - x1), ...properties }));
    };
    parts.push(svg("text", { x: LEFT - 8, y: y + STRIP - 1, "text-anchor": "end", text: "compiling" }));
    bins.each(compiling.ns, (bin, ns) => strip(bin, {
      class: "compiling", y, height: STRIP, opacity: Math.min(1, 0.15 + ns / bins.width_ns).toFixed(2),
    }), all);
    bins.each(compiling.invalidated, (bin) => strip(bin, { class: "invalidation", y: y + STRIP - 3, height: 3 }), all);
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

  // moving: more changes are coming. A null chooses the whole trace.
  function choose_window(a, b, moving) {
    if (a === null) page_window.set(...page_window.whole);
    else page_window.set(bin_start(Math.min(a, b)), bin_start(Math.max(a, b) + 1), { moving });
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
      if (pressed !== null && bin !== pressed) choose_window(pressed, bin, true);
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
      let [first, last] = bins.range() || [-1, -1];
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
    for (const row of kind_rows.filter(found)) sums.set(row.reason, sums.get(row.reason) + count_in_window(row));
    const total = [...sums.values()].reduce((a, b) => a + b, 0);
    const listed = all_reasons_listed ? reasons : reasons.filter((reason, i) => i < COLORS || view.reasons.has(reason));
    const buttons = listed.map((reason) => el("li", {}, el("button", {
      type: "button", "aria-pressed": String(view.reasons.has(reason)), title: reason,
      onclick() {
        if (!view.reasons.delete(reason)) view.reasons.add(reason);
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
    refill($("legend"), ...buttons);
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
    const items = new Map();
    kind_rows.forEach((row, i) => {
      if (!wanted(row)) return;
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
      item.longest = Math.max(item.longest, longest_in_window(row));
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
    const first = bins.first(), bars = bins.last() + 1 - first;
    const points = Math.min(30, bars), sums = new Array(points).fill(0);
    for (const row of item.rows) {
      bins.each(row.counts, (bin, count) => { sums[Math.floor((bin - first) * points / bars)] += count; });
    }
    const most = Math.max(1, ...sums);
    const bar = (sum, i) => {
      const height = Math.max(1, sum / most * TREND_HEIGHT).toFixed(1);
      return sum === 0 ? "" : `M${(i * 90 / points).toFixed(0)} ${TREND_HEIGHT}v${-height}`;
    };
    const path = sums.map(bar).join("");
    return el("td", { class: "trend", title: `from ${time(item.first)} on` },
      svg("svg", { width: TREND_WIDTH, height: TREND_HEIGHT, viewBox: `-1 0 ${TREND_WIDTH} ${TREND_HEIGHT}`, role: "img", "aria-label": `from ${time(item.first)} on` },
        svg("path", { d: path, stroke: "currentColor", "stroke-width": 2, fill: "none" })));
  }

  const reason_line = (reason, more) => el("div", { title: advice_title(reason) },
    el("span", { class: `swatch k${color_of.get(reason)}` }), el("span", {}, ...breakable(reason)), more);

  // --- advice for reasons

  const advice = new Map(data.advised.map(([reason, fallback, n]) => [`${fallback} ${S[reason]}`, data.advice[n]]));
  const advice_of = (reason) => advice.get(`${view.fallbacks ? 1 : 0} ${reason}`);
  const ADVICE_LABELS = ["Meaning", "Usual causes", "What helps"];
  function advice_title(reason) {
    const texts = advice_of(reason);
    return texts && texts.map((text, i) => `${ADVICE_LABELS[i]}: ${text}`).join("\n");
  }

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

  let total_lost = 0, most_lost = 1, lost_column, longest_column; // of the table

  function cell(name, item, total, most) {
    const row = item.row;
    switch (name) {
      case "lost": return number_cell(lost_column(item.lost));
      case "lost_share": return share_cell(item.lost, most_lost, total_lost);
      case "longest": return number_cell(item.longest > 0 ? longest_column(item.longest) : "");
      case "count":
        return item.count === 0 ? number_cell("–", "none was recorded") : number_cell(number(item.count));
      case "share": return share_cell(item.count, most, total);
      case "method": {
        const { name: method, place } = label_parts(row.frame);
        const lines = view.group === "place" ? place : label_parts(row.frame).file;
        return el("td", { class: "name", title: row.frame }, ...breakable(method), lines ? " " : null,
          lines ? sources.place_link(lines, short_path(lines)) : null);
      }
      case "file": return el("td", { class: "name" }, ...breakable(row.file || row.frame));
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
    const estimated = bins.range() || !data.cost.exact;
    return estimated ? `; about ${lost} lost, by the recorded exits` : `; ${lost} lost`;
  }

  function draw_table() {
    const columns = columns_of(GROUPS[view.group]), by_default = lost_first() ? "lost" : "count";
    if (!columns.includes(view.sort)) view.sort = by_default;
    refill($("groups"), ...Object.entries(GROUPS).map(([name, group]) => el("button", {
      type: "button", "aria-pressed": String(view.group === name), text: group.title,
      onclick() {
        Object.assign(view, { group: name, shown: ROWS_AT_FIRST, sort: by_default, descending: true });
        draw_table();
      },
    })));

    refill($("table-head"), el("tr", {}, ...columns.map((name) => {
      const column = COLUMNS[name], sorting = view.sort === name;
      return el("th", { scope: "col", class: column.number ? "number" : undefined, "aria-sort": sorting ? (view.descending ? "descending" : "ascending") : undefined },
        el("button", { type: "button", "data-column": name, onclick() {
          view.descending = sorting ? !view.descending : LARGEST_FIRST.includes(name);
          view.sort = name;
          draw_table();
        } }, column.title, el("span", { class: "arrow", "aria-hidden": "true", text: sorting ? (view.descending ? "▾" : "▴") : "" })));
    })));

    const items = sorted(matching_items());
    const total = kind_rows.reduce((sum, row) => sum + count_in_window(row), 0);
    const sum = items.reduce((all, item) => all + item.count, 0);
    const most = Math.max(1, ...items.map((item) => item.count));
    total_lost = kind_rows.reduce((all, row) => all + lost_in_window(row), 0);
    most_lost = Math.max(1, ...items.map((item) => item.lost));
    $("table-sum").textContent = items.length === 0 ? "Nothing matches." : sum_text(items, sum, total);
    $("table-note").hidden = summed_places === 0;
    const places = kind_rows.filter((row) => row.places === 1).length;
    const order = lost_first() ? "that lost most" : `with most ${word()}s`;
    $("table-note").textContent = `The page lists the ${number(places)} places ${order}. ` +
      `${number(summed_places)} others are summed up by reason: the search finds them by that only.`;
    const shown = items.slice(0, view.shown);
    lost_column = time_column(shown.map((item) => item.lost));
    longest_column = time_column(shown.map((item) => item.longest));
    const row_of = (item) => el("tr", {}, ...columns.map((name) => cell(name, item, total, most)));
    $("table-body").replaceChildren(...shown.map(row_of));
    $("table-more").hidden = items.length <= view.shown;
    $("table-more").textContent = `Show ${number(Math.min(items.length - view.shown, 200))} more of ${number(items.length)}`;
  }

  function listen_to_table() {
    $("table-more").addEventListener("click", () => { view.shown += 200; draw_table(); });
  }

  // --- flame graph ---------------------------------------------------------------------------------------

  const nodes = flame_nodes(flame_union(data.stacks, data.before_stacks).map(({ parent, row, was }, index) => {
    const [, text, , why] = row || was;
    return {
      parent, text: index === 0 ? "all exits" : S[text], total: row ? row[2] : 0, why: why === 1, both: [0, 0],
      whole: [row ? row[2] : 0, was ? was[2] : 0], numbers: [row ? row[4] : 0, was ? was[4] : 0],
    };
  }));
  const flame_side = { before: false, redraw: draw_flame };

  // With reasons chosen, a frame is as wide as the exits for these reasons; otherwise as all exits that passed through it.
  function weigh() {
    const all = view.reasons.size === 0 || view.fallbacks;
    for (const node of nodes)
      node.both = bins.range() ? node.numbers.map((number) => bins.sum(number)) : [...node.whole];
    if (bins.range()) flame_add_up(nodes, "both");
    for (const node of nodes) {
      node.value = all || (node.why && view.reasons.has(node.text)) ? node.both[flame_side.before ? 1 : 0] : 0;
    }
    if (!all) flame_add_up(nodes, "value");
    for (const node of nodes) node.children.sort((a, b) => b.value - a.value || b.total - a.total);
  }

  const flame = flame_view({
    id: "flame", nodes, sums: ["both"], side: flame_side, search, $, el, show_tip, hide_tip,
    amount_of: data.before_stacks && ((node, before) => node.both[before ? 1 : 0]),
    empty: "No exits with a backtrace here.",
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
        (bins.range() ? `; from ${bins.text()}` : "")),
  });

  function draw_flame() {
    weigh();
    flame.draw();
  }

  // --- all sections ------------------------------------------------------------------------------------------

  // What the bar at the top says, and the key figures.
  function draw_bar(window) {
    $("bar-window").textContent = window
      ? `${time(window[0])} to ${time(window[1])}; sums of exits, samples and system calls: ` +
        `${bins.text()}, in steps of ${time(bins.width_ns)}`
      : `The whole trace: ${time(data.span_ns)}`;
    if (window && data.bins.uncounted > 0)
      $("bar-window").textContent += `; without ${number(data.bins.uncounted)} values, of which there are too many`;
    $("bar-whole").hidden = $("tiles-note").hidden = !window;
  }

  const lists = list_view({ el, breakable, number, with_times, search });
  const sources = sources_view({
    data, S, bins, search, tabs, page_window, breakable, $, el, number, plural, time, time_column,
  });
  code_view({ data, S, search, $, el, number, plural, time, time_column });
  const cost = cost_view({
    data, S, bins, search, page_window, rows, $, el, svg, number, percent, plural, time, time_column, lists,
  });
  kernel_view({ data, S, bins, search, page_window, $, number, percent, time, lists });
  const threads = threads_view({
    data, S, search, $, el, svg, number, percent, plural, time, with_times, round_step, show_tip, hide_tip, cost,
    page_window, breakable, label_threads,
  });
  const calls = calls_view({
    data, S, search, tabs, $, el, number, percent, plural, time, time_column, round_step, show_tip, hide_tip, label_parts,
    short_path, sources, page_window, breakable, label_threads,
  });
  const samples = samples_view({
    data, S, bins, search, page_window, $, el, show_tip, hide_tip, percent, plural, time, label_parts,
  });
  const has_exits = rows.length > 0 || (!threads.any && !calls.any && !samples.any);
  choose_kind(view.fallbacks);
  head_view({
    data, S, rows, has_exits, cost, calls, samples, threads, $, el, number, percent, plural, time,
  });
  first_view({ data, search, tabs, $, el, number, percent, plural, time, with_code });
  listen_to_timeline();
  listen_to_table();
  update();
  draw_bar(null);
  page_window.follow("bar", draw_bar, true);
  page_window.follow("exits", () => { view.shown = ROWS_AT_FIRST; draw_exits(); }, true);
  page_window.follow("exits flame", draw_flame);
  search.follow(update);
  $("bar-whole").addEventListener("click", () => page_window.set(...page_window.whole));
  link_view(page_window, tabs);
}
