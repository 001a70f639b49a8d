// What exits cost, from the parts of #data that only a trace with the stream `states` has:
//
//   cost         exact (lost times of rows are those of the sites); sentence, advice and others:
//                texts, which may be empty
//   states       [state, ns of all threads, 1: the thread runs]
//   interpreted  [iseq, why, calls, ns, first ns, last ns] of what ran without compiled code,
//                longest first; why is a text, not its number; interpreted_left_out
//   gains        [iseq, ns, slow calls, ns each, compiled calls, ns each], largest first; estimates
//                (see analysis/call_gains.h); gains_left_out
//   slices       [pid, name of the track, [kind, begin ns, length, why, place ...]], outer ones
//                first; slices_left_out
//                kind: compiled, interpreted, exited (because of an exit) or compiling
//   rows         have three more members (see script.js): ns that their exits lost, the longest,
//                [bin, ns ...] of the recorded exits
//   lost_bins    width_ns, start_ns and count of these bins
"use strict";
function cost_view({ data, S, $, el, breakable, svg, number, percent, plural, time }) {
  const timed = data.cost !== undefined;
  const by_name = new Map();

  // Slices by process and thread name. Threads that share a name get none: their tracks have no id.
  function decode() {
    for (const [pid, name, numbers] of data.slices) {
      const list = [], key = `${pid} ${S[name].replace(/ execution$/, "")}`;
      for (let i = 0; i < numbers.length; i += 5) {
        const [kind, from, length, why, place] = numbers.slice(i, i + 5);
        list.push({ kind: S[kind], from, to: from + length, why: S[why], place: S[place] });
      }
      by_name.set(key, by_name.has(key) ? [] : list);
    }
  }

  const slices_of = (pid, name) => by_name.get(`${pid} ${name}`) || [];
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
  const column_head = (text, is_number) => el("th", { scope: "col", class: is_number ? "number" : undefined, text });
  const number_cell = (text) => el("td", { class: "number", text });

  function draw_states() {
    const sum = sum_of(data.states), running = sum_of(data.states.filter(([, , runs]) => runs));
    const titles = ["state", "time", "share", "of running"].map((title, i) => column_head(title, i > 0));
    const rows = data.states.slice().sort((a, b) => b[1] - a[1]).map(([state, ns, runs]) => el("tr", {},
      el("td", { text: state }), number_cell(time(ns)), number_cell(percent(ns, sum)),
      number_cell(runs ? percent(ns, running) : "")));
    return el("div", { class: "part" }, el("h3", { text: `Where the time went: ${time(sum)}` }),
      el("table", { id: "states" }, el("thead", {}, el("tr", {}, ...titles)), el("tbody", {}, ...rows)));
  }

  // A table that shows ten rows at first. `cells` makes the texts of a row; the first `texts` of them
  // are no numbers.
  function draw_list({ id, title, titles, texts, rows, left_out, cells }) {
    let shown = 10;
    const body = el("tbody", {}), more = el("button", { type: "button", onclick() { shown += 50; fill(); } });
    const draw_cell = (text, i) =>
      (i === 0 ? el("td", { class: "name" }, ...breakable(text)) : i < texts ? el("td", { text }) : number_cell(text));
    function fill() {
      body.replaceChildren(...rows.slice(0, shown).map((row) => el("tr", {}, ...cells(row).map(draw_cell))));
      more.hidden = rows.length <= shown;
      more.textContent = `Show ${number(Math.min(50, rows.length - shown))} more of ${number(rows.length)}`;
    }
    fill();
    const head = el("tr", {}, ...titles.map((text, i) => column_head(text, i >= texts)));
    return el("div", { class: "part wide" }, el("h3", { text: title }),
      el("table", { id }, el("thead", {}, head), body), more,
      left_out > 0 ? el("p", { class: "muted", text: `and ${number(left_out)} more` }) : null);
  }

  const draw_interpreted = () => draw_list({
    id: "interpreted", title: "Hot but interpreted, with callees that are interpreted, too",
    titles: ["method", "why", "interpreted", "calls", "first call", "last call"], texts: 2,
    rows: data.interpreted, left_out: data.interpreted_left_out,
    cells: ([iseq, why, calls, ns, first, last]) =>
      [S[iseq], why, time(ns), number(calls), time(first), time(last)],
  });
  const draw_gains = () => draw_list({
    id: "gains",
    title: "Estimated gain, if slow calls (exited, or interpreted afterwards) took as long as compiled ones",
    titles: ["method", "gain", "slow calls", "each", "compiled calls", "each"], texts: 1,
    rows: data.gains, left_out: data.gains_left_out,
    cells: ([iseq, gain, slow, slow_ns, compiled, compiled_ns]) =>
      [S[iseq], time(gain), number(slow), time(slow_ns), number(compiled), time(compiled_ns)],
  });

  $("cost").hidden = !timed;
  if (timed) {
    decode();
    $("cost-sentence").textContent = `${data.cost.sentence[0].toUpperCase()}${data.cost.sentence.slice(1)}.`;
    const advice = [data.cost.advice, data.cost.others].filter(Boolean).join("; ");
    $("cost-advice").textContent = advice === "" ? "" : `${advice[0].toUpperCase()}${advice.slice(1)}.`;
    const tables = [[data.states, draw_states], [data.interpreted, draw_interpreted], [data.gains, draw_gains]];
    $("cost-tables").replaceChildren(...tables.filter(([rows]) => rows.length > 0).map(([, draw]) => draw()));
  }
  return { timed, slices_of, innermost_at, line_of, draw_slices };
}
