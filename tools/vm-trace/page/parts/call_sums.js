// The sums of calls in the window: a table of methods, and a flame graph.
"use strict";
function call_sums_view({
  calls, left_out, search, $, el, show_tip, hide_tip, number, percent, plural, time, time_column, label_parts,
  short_path, sources, page_window, breakable, find,
}) {
  const ROWS_AT_FIRST = 20;
  const view = { ready: false, sort: "own", descending: true, shown: ROWS_AT_FIRST };

  // --- methods -------------------------------------------------------------------------------------

  const COLUMNS = {
    own: ["Own time", (sum) => sum.own], share: ["Share", (sum) => sum.own], total: ["Total", (sum) => sum.total],
    calls: ["Calls", (sum) => sum.calls], each: ["Own, each", (sum) => sum.own / Math.max(1, sum.calls)],
    longest: ["Longest", (sum) => sum.longest], method: ["Method", (sum) => sum.name],
  };

  function name_cell(sum) {
    const { name, place } = label_parts(sum.name);
    const button = { type: "button", class: "place", title: "Find its calls", onclick() { find(sum.name); } };
    const link = el("button", button, ...breakable(name));
    return el("td", { class: "name", title: sum.name }, ...(view.ready ? [link] : breakable(name)), place ? " " : null,
      place ? sources.place_link(place, short_path(place)) : null);
  }

  // `texts`: of durations, by column.
  function cell(column, sum, all, most, texts) {
    switch (column) {
      case "own": case "total": case "longest": case "each": {
        const ns = COLUMNS[column][1](sum);
        return el("td", { class: "number", title: `${number(ns)} ns`, text: texts[column](ns) });
      }
      case "calls": return el("td", { class: "number", text: number(sum.calls) });
      case "share": return el("td", { class: "share" },
        el("span", { class: "bar", style: `width:${(60 * sum.own / most).toFixed(1)}px` }), percent(sum.own, all));
      default: return name_cell(sum);
    }
  }

  function head_cell(id, title) {
    const sorting = view.sort === id, arrow = sorting ? (view.descending ? "▾" : "▴") : "";
    const sorts = () => {
      view.descending = sorting ? !view.descending : id !== "method";
      view.sort = id;
      draw_methods();
    };
    return el("th", {
      scope: "col", class: id === "method" || id === "share" ? undefined : "number",
      "aria-sort": sorting ? (view.descending ? "descending" : "ascending") : undefined,
    }, el("button", { type: "button", onclick: sorts }, title,
      el("span", { class: "arrow", "aria-hidden": "true", text: arrow })));
  }

  function draw_methods() {
    const whole = page_window.is_whole() || !view.ready;
    const all_sums = whole ? calls.called : calls.sums_in(page_window.get()), value = COLUMNS[view.sort][1];
    const sums = all_sums.filter(({ name }) => search.matches(name));
    if (view.sort === "method") sums.sort((a, b) => (a.name < b.name ? -1 : 1));
    else sums.sort((a, b) => value(a) - value(b));
    if (view.descending) sums.reverse();
    const sum_of = (column) => sums.reduce((sum, one) => sum + one[column], 0);
    const all = all_sums.reduce((sum, one) => sum + one.own, 0);
    const most = sums.reduce((max, one) => Math.max(max, one.own), 1);
    $("call-methods-sum").textContent = `${!whole && left_out > 0 ? "About: " : ""}${plural(sums.length, "method")}, ` +
      `${plural(sum_of("calls"), "call")}, ${time(sum_of("own"))} own time` +
      (whole ? "" : "; calls are cut at the borders of the window");
    refill($("call-methods-head"),
      el("tr", {}, ...Object.entries(COLUMNS).map(([id, [title]]) => head_cell(id, title))));
    const shown = sums.slice(0, view.shown), texts = {};
    for (const column of ["own", "total", "longest", "each"])
      texts[column] = time_column(shown.map(COLUMNS[column][1]));
    refill($("call-methods-body"), ...shown.map((sum) =>
      el("tr", {}, ...Object.keys(COLUMNS).map((column) => cell(column, sum, all, most, texts)))));
    $("call-methods-more").hidden = sums.length <= view.shown;
    $("call-methods-more").textContent =
      `Show ${number(Math.min(200, sums.length - view.shown))} more of ${number(sums.length)}`;
  }

  // --- flame graph -----------------------------------------------------------------------------------

  let flame = null;

  function make_flame() {
    const { nodes, left_out: paths } = calls.flame_paths(), root = nodes[0];
    const own_of = (node) => node.children.reduce((left, child) => left - child.value, node.value);
    const inside_shown = (node, shown) => shown.index !== 0 && node.depth > shown.depth;
    return flame_view({
      id: "call-flame", nodes, sums: ["calls"], search, $, el, show_tip, hide_tip, empty: "No calls in the window.",
      class_of: (node) => (label_parts(node.text).place === "" || node.text.includes("(<internal:") ? "native" : ""),
      name_of: (node) => label_parts(node.text).name,
      describe: (node) =>
        `${node.text}  ${time(node.value)}, ${percent(node.value, root.value)}; own ${time(own_of(node))}`,
      tip_of: (node, shown) => [
        `total ${time(node.value)}, ${percent(node.value, root.value)} of all` +
          (inside_shown(node, shown) ? `, ${percent(node.value, shown.value)} of what is shown` : ""),
        ...(node === root ? [] : [
          `own ${time(own_of(node))}, ${percent(own_of(node), node.value)} of it`, plural(node.calls, "call")]),
      ],
      sum_of: (matched) => (matched !== null ? `${percent(matched, root.value)} of the time is in matching calls`
        : `${time(root.value)} in calls, of all threads` + (page_window.is_whole() ? "" : ", in the window") +
          (paths > 0 ? `; ${plural(paths, "call")} of rare paths left out` : "")),
    });
  }

  function draw_flame() {
    flame = flame || make_flame();
    calls.weigh_flame(page_window.get());
    flame.draw();
  }

  // --- all ---------------------------------------------------------------------------------------------

  function draw() {
    draw_methods();
    draw_flame();
  }

  // The slices are there.
  function begin() {
    view.ready = true;
    page_window.follow("call sums", draw);
    search.follow(() => { if (flame) flame.draw(); });
    addEventListener("resize", draw_flame);
    setTimeout(draw); // the lanes appear first
  }

  $("call-methods-more").addEventListener("click", () => { view.shown += 200; draw_methods(); });
  search.follow(draw_methods);
  draw_methods();
  return { begin };
}
