// What exits cost, from the parts of #data that only a trace with the stream `states` has:
//
//   cost         exact (lost times of rows are those of the sites); sentence, advice and others:
//                texts, which may be empty
//   states       [state, ns of all threads, 1: the thread runs]
//   interpreted  [iseq, why, calls, ns, first ns, last ns] of what ran without compiled code,
//                longest first; why is a text, not its number; interpreted_left_out
//   slices       [process, name of the track, [kind, begin ns, length, why, place ...]], outer ones
//                first; slices_left_out
//                kind: compiled, interpreted, exited (because of an exit) or compiling
//   rows         have two more members (see script.js): ns that their exits lost, and the longest.
//                The numbers after that of their count are of the ns that recorded exits lost, and
//                of the longest of these.
//
// The trace has sums of states and of interpreted methods, but not when they were. So a window has none of them.
"use strict";
function cost_view({
  data, S, bins, search, page_window, rows, $, el, svg, number, percent, plural, time, time_column, lists,
}) {
  const { column_head, number_cell, draw_list } = lists;
  const timed = data.cost !== undefined;
  const by_name = new Map();

  // Slices by process and thread name. Threads that share a name get none: their tracks have no id.
  function decode() {
    for (const [process, name, numbers] of data.slices) {
      const list = [], key = `${process} ${S[name].replace(/ execution$/, "")}`;
      for (let i = 0; i < numbers.length; i += 5) {
        const [kind, from, length, why, place] = numbers.slice(i, i + 5);
        list.push({ kind: S[kind], from, to: from + length, why: S[why], place: S[place] });
      }
      by_name.set(key, by_name.has(key) ? [] : list);
    }
  }

  const slices_of = (process, name) => by_name.get(`${process} ${name}`) || [];
  const innermost_at = (slices, ns) => slices.filter((slice) => slice.from <= ns && ns < slice.to).pop();

  const KINDS = {
    compiled: "compiled code", exited: "interpreted because of an exit",
    interpreted: "interpreted", compiling: "compiling",
  };
  function line_of(slice) {
    const why = slice.why ? `: ${slice.why}` : "", place = slice.place ? ` in ${slice.place}` : "";
    return `${KINDS[slice.kind] || slice.kind} ${time(slice.to - slice.from)}${why}${place}`;
  }

  // Outer slices come first, so inner ones are drawn over them. Slices narrower than half a pixel are
  // left out.
  function draw_slices(slices, window, width, y, height) {
    const x_of = (ns) => Math.max(0, Math.min(width, (ns - window[0]) / (window[1] - window[0]) * width));
    return slices.filter((slice) => slice.to > window[0] && slice.from < window[1]).flatMap((slice) => {
      const x = x_of(slice.from), wide = x_of(slice.to) - x;
      if (wide < 0.5) return [];
      return svg("rect", { class: `slice ${slice.kind}`, x: x.toFixed(1), width: wide.toFixed(1), y, height });
    });
  }

  const sum_of = (states) => states.reduce((sum, [, ns]) => sum + ns, 0);

  function draw_states() {
    const sum = sum_of(data.states), running = sum_of(data.states.filter(([, , runs]) => runs));
    const titles = ["state", "time", "share", "of running"].map((title, i) => column_head(title, i > 0));
    const states = data.states.filter(([state]) => search.matches(state)).sort((a, b) => b[1] - a[1]);
    const text_of = time_column(states.map(([, ns]) => ns));
    const rows = states.map(([state, ns, runs]) => el("tr", {},
      el("td", { text: state }), number_cell(text_of(ns)), number_cell(percent(ns, sum)),
      number_cell(runs ? percent(ns, running) : "")));
    if (rows.length === 0) rows.push(el("tr", {}, el("td", { class: "empty", colspan: 4, text: "Nothing matches." })));
    return el("div", { class: "part" }, el("h3", { text: `Where the time went: ${time(sum)}` }),
      el("table", { id: "states" }, el("thead", {}, el("tr", {}, ...titles)), el("tbody", {}, ...rows)));
  }

  const draw_interpreted = () => draw_list({
    id: "interpreted", title: "Hot but interpreted, with callees that are interpreted, too",
    titles: ["method", "why", "interpreted", "calls", "first call", "last call"], texts: 2,
    rows: data.interpreted, left_out: data.interpreted_left_out,
    cells: ([iseq, why, calls, ns, first, last]) =>
      [S[iseq], why, { ns }, number(calls), { ns: first }, { ns: last }],
  });

  const sentence_of = (text) => (text === "" ? "" : `${text[0].toUpperCase()}${text.slice(1)}.`);

  function sentence_of_window() {
    const lost = rows.reduce((sum, row) => sum + bins.sum(row.counts + 1), 0);
    const exits = rows.reduce((sum, row) => sum + (row.fallback ? 0 : bins.sum(row.counts)), 0);
    return `From ${bins.text()}, ${plural(exits, "exit")} lost about ${time(lost)}, by the recorded exits.`;
  }

  function draw() {
    const whole = bins.range() === null;
    $("cost-sentence").textContent = whole ? sentence_of(data.cost.sentence) : sentence_of_window();
    const advice = [data.cost.advice, data.cost.others].filter(Boolean).join("; ");
    $("cost-advice").textContent = whole ? sentence_of(advice) : "";
    const tables = [[data.states, draw_states], [data.interpreted, draw_interpreted]]
      .filter(([of_table]) => of_table.length > 0);
    $("cost-window").textContent = whole || tables.length === 0 ? ""
      : "The trace has only the sums of states and of interpreted methods of its whole time, so they are not here.";
    $("cost-tables").replaceChildren(...(whole ? tables : []).map(([, draw_table]) => draw_table()));
  }

  $("cost").hidden = !timed;
  if (timed) {
    decode();
    page_window.follow("cost", draw);
    search.follow(draw);
    draw();
  }
  return { timed, slices_of, innermost_at, line_of, draw_slices };
}
