// The calls of the trace: lanes of slices, search, one call in detail, sums. See call_slices.js for the data.
"use strict";
function calls_view({
  data, S, search, tabs, $, el, number, percent, plural, time, time_column, round_step, show_tip, hide_tip, label_parts,
  short_path, sources, page_window, breakable, label_threads,
}) {
  const any = data.calls !== undefined;
  $("calls").hidden = $("call-methods-section").hidden = $("call-flame-section").hidden = !any;
  if (!any) return { any };

  const calls = call_slices({ data, S, label_threads });
  const { methods, tracks, begins, ends, own, method_of, depth_of, parent_of, extras } = calls;
  const left_out = data.calls.recorded - calls.count;
  const state = { selected: -1, found: null };
  const lanes = lanes_view({
    calls, state, $, plural, time, round_step, label_parts, page_window, show_tip_of, hide_tip, select,
    open: (slice) => { if (slice >= 0) lanes.zoom_to(slice); else page_window.back(); },
  });
  const sums = call_sums_view({
    calls, left_out, search, $, el, show_tip, hide_tip, number, percent, plural, time, time_column, label_parts,
    short_path, sources, page_window, breakable, find,
  });
  const name_of = (slice) => methods[method_of[slice]].name;
  const length_of = (slice) => ends[slice] - begins[slice];

  // --- search ----------------------------------------------------------------------------------------

  function draw_found() {
    state.found = null;
    if (search.any()) {
      const matches = Uint8Array.from(methods, ({ name }) => (search.matches(name) ? 1 : 0));
      let count = 0;
      for (let i = 0; i < calls.count; i++) count += matches[method_of[i]];
      state.found = { methods: matches, count, rows: new Map() };
    }
    show_found();
    lanes.redraw();
  }

  function show_found() {
    const found = state.found;
    $("calls-previous").hidden = $("calls-next").hidden = !found || found.count === 0;
    $("calls-found").textContent = "";
    if (!found) return;
    let rank = 0;
    if (state.selected >= 0 && found.methods[method_of[state.selected]])
      for (let i = 0; i <= state.selected; i++) rank += found.methods[method_of[i]];
    $("calls-found").textContent = `${rank > 0 ? `${number(rank)} of ` : ""}${plural(found.count, "call")}`;
  }

  // Selects the next match, by track and begin. With nothing selected, it begins at the window.
  function step_found(step) {
    if (!state.found || state.found.count === 0) return;
    let at = state.selected;
    if (at < 0) {
      const [from] = page_window.get();
      at = tracks[0].first;
      while (at < tracks[0].end && ends[at] <= from) at++;
      if (step > 0) at--;
    }
    do at = (at + step + calls.count) % calls.count; while (!state.found.methods[method_of[at]]);
    reveal(at);
  }

  function find(name) {
    state.selected = -1;
    search.set(name);
    step_found(1);
    tabs.reveal($("calls"));
    $("calls").scrollIntoView();
  }

  // --- one call ----------------------------------------------------------------------------------------

  function select(slice) {
    state.selected = slice;
    show_detail();
    show_found();
    lanes.redraw();
  }

  function reveal(slice) {
    lanes.show(slice);
    select(slice);
  }

  function extra_lines(slice) {
    const extra = extras.get(slice), lines = [];
    if (!extra) return lines;
    if (extra.before) lines.push("It was running when the trace began.");
    if (extra.after) lines.push("It had not returned when the trace ended.");
    if (extra.left_out > 0) {
      const calls_inside = plural(extra.left_out, "call");
      lines.push(`${calls_inside} inside are not recorded; ${time(extra.left_out_ns)} of its own time are theirs.`);
    }
    return lines;
  }

  // Links to the callers; of many the outermost and the innermost.
  function ancestor_links(slice) {
    const above = [];
    for (let i = parent_of[slice]; i >= 0; i = parent_of[i]) above.unshift(i);
    const link = (i) => el("button",
      { type: "button", title: name_of(i), text: lanes.short_names[method_of[i]], onclick() { reveal(i); } });
    if (above.length <= 24) return above.map(link);
    const between = `… ${plural(above.length - 23, "call")} …`;
    return [...above.slice(0, 8).map(link), between, ...above.slice(-15).map(link)];
  }

  function show_detail() {
    const slice = state.selected, box = $("call-detail");
    if (slice < 0) { box.replaceChildren(); return; }
    const { name, place } = label_parts(name_of(slice));
    const facts = [
      ["begins", lanes.moment(begins[slice])], ["took", time(length_of(slice))],
      ["own time", `${time(own[slice])}, ${percent(own[slice], length_of(slice))}`],
      ["thread", lanes.track_of(slice).name], ["depth", number(depth_of[slice])],
    ].map(([title, text]) => el("span", { class: "fact" }, el("span", { class: "muted", text: `${title} ` }), text));
    const onclick = () => lanes.zoom_to(state.selected);
    const zoom = el("button", { type: "button", id: "call-zoom", text: "Zoom to it", onclick });
    const links = ancestor_links(slice).flatMap((part, i) => (i > 0 ? [" › ", part] : [part]));
    box.replaceChildren(
      el("p", { class: "mono" }, el("strong", { text: name }), " ", place ? sources.place_link(place, place) : null),
      el("p", {}, ...facts, zoom),
      ...extra_lines(slice).map((text) => el("p", { text })));
    if (links.length > 0)
      box.append(el("p", { id: "call-ancestors" }, el("span", { class: "muted", text: "called by " }), ...links));
  }

  function show_tip_of(event, slice) {
    if (slice < 0) { hide_tip(); return; }
    const { name, place } = label_parts(name_of(slice)), lines = extra_lines(slice);
    show_tip(event, el("div", { class: "mono" }, el("strong", { text: name })),
      ...(place ? [el("div", { class: "mono muted", text: short_path(place) })] : []),
      el("div", { text: `${time(length_of(slice))}, own ${time(own[slice])}` }),
      ...[...lines, `at ${lanes.moment(begins[slice])}`].map((text) => el("div", { class: "muted", text })));
  }

  // --- the keyboard ------------------------------------------------------------------------------------

  // The call of the same depth before or after the selected one.
  function beside(step) {
    const slice = state.selected, row = lanes.track_of(slice).rows[depth_of[slice]];
    const at = calls.first_after(row, begins[slice]) + step;
    return at >= 0 && at < row.length ? row[at] : slice;
  }

  function first_inside() {
    const next = state.selected + 1;
    return next < calls.count && parent_of[next] === state.selected ? next : state.selected;
  }

  function on_key(event) {
    const chosen = state.selected >= 0;
    const does = {
      ArrowLeft: () => lanes.pan(-0.2 * lanes.window_ns()),
      ArrowRight: () => lanes.pan(0.2 * lanes.window_ns()),
      "+": () => lanes.zoom_at(0.5, 0.5),
      "-": () => lanes.zoom_at(0.5, 2),
      Escape: () => (chosen ? select(-1) : page_window.back()),
      Home: () => page_window.set(...page_window.whole),
      Enter: chosen && (() => lanes.zoom_to(state.selected)),
      ArrowUp: chosen && parent_of[state.selected] >= 0 && (() => reveal(parent_of[state.selected])),
      ArrowDown: chosen && (() => reveal(first_inside())),
      ".": chosen && (() => reveal(beside(1))),
      ",": chosen && (() => reveal(beside(-1))),
      n: () => step_found(1),
      N: () => step_found(-1),
    }[event.key];
    if (!does || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    does();
  }

  // --- all -----------------------------------------------------------------------------------------------

  function notes() {
    const { unrecorded, recorded, misfits, picked } = data.calls, list = [];
    if (unrecorded > 0) {
      list.push(`${plural(unrecorded, "call")} inside others were not recorded: too short, too deep, or not chosen. ` +
        "Their time is own time of the call around them.");
    }
    if (left_out > 0) {
      const those = picked ? `those ${number(calls.count)} of ${plural(recorded, "call")} whose method is chosen` :
        `the ${number(calls.count)} longest of ${plural(recorded, "call")}`;
      list.push(`The page has ${those}. In a window and in ` +
        "the flame graph, the time of the others is own time of their callers; the table of the whole trace has all.");
    }
    if (misfits > 0) list.push(`${plural(misfits, "call")} were dropped: they do not nest.`);
    return list;
  }

  function show_notes(more) {
    const text = [...notes(), ...(more ? [more] : [])].join(" ");
    $("calls-note").textContent = text;
    $("calls-note").hidden = text === "";
  }

  function show_window() {
    const [from, to] = page_window.get(), step = (to - from) / 1000;
    $("calls-window").textContent = page_window.is_whole()
      ? `${time(to)}. Drag to zoom; click, then turn the wheel; Shift and drag to move.`
      : `${lanes.axis_time(from, step)} to ${lanes.axis_time(to, step)}, ${time(to - from)}`;
    $("calls-back").hidden = !page_window.can_go_back();
    $("calls-whole").hidden = page_window.is_whole();
  }

  function listen() {
    $("lanes").addEventListener("keydown", on_key);
    search.follow(draw_found);
    $("search").addEventListener("keydown", (event) => {
      if (event.key === "Enter") step_found(event.shiftKey ? -1 : 1);
    });
    $("calls-next").addEventListener("click", () => step_found(1));
    $("calls-previous").addEventListener("click", () => step_found(-1));
    $("calls-back").addEventListener("click", page_window.back);
    $("calls-whole").addEventListener("click", () => page_window.set(...page_window.whole));
  }

  function show_sums_only(why) {
    for (const id of ["lanes", "call-flame-section"]) $(id).hidden = true;
    show_notes(`This browser cannot unpack single calls (${why}), so the page shows only sums.`);
  }

  async function begin() {
    if (!calls.can_unpack()) { show_sums_only("it has no DecompressionStream"); return; }
    show_window();
    try {
      await calls.unpack();
    } catch (error) {
      show_sums_only(error.message);
      return;
    }
    listen();
    lanes.begin();
    draw_found();
    show_window();
    page_window.follow("calls", () => { show_window(); lanes.redraw(); }, true);
    sums.begin();
  }

  show_notes();
  begin();
  return { any };
}
