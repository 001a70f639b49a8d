// What exits cost, from the parts of #data that only a trace with the stream `states` has:
//
//   cost         exact (lost times of rows are those of the sites), sentence, advice, others: texts, which may be empty
//   states       [state, ns of all threads, 1: the thread runs]
//   interpreted  [iseq, why, calls, ns, first ns, last ns] of what ran without compiled code, longest first       interpreted_left_out
//   gains        [iseq, ns, slow calls, ns each, compiled calls, ns each], largest first; estimates (see analysis/call_gains.h)       gains_left_out
//   slices       [pid, name of the track, [compiled, interpreted, exited (because of an exit) or compiling, begin ns, length, why, place ...]], outer ones first       slices_left_out
//   rows have three more members (see script.js): ns that their exits lost, the longest, [bin, ns ...] of the recorded exits
//   lost_bins    width_ns, start_ns and count of these bins
"use strict";
function cost_view({ data, S, $, el, breakable, svg, number, percent, plural, time }) {
  const timed = data.cost !== undefined;
  const by_name = new Map();

  // The slices of a thread: nothing if other threads have its name, for their tracks tell no more.
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
  function line_of(slice) {
    const what = { compiled: "compiled code", exited: "interpreted because of an exit", interpreted: "interpreted", compiling: "compiling" }[slice.kind] || slice.kind;
    return `${what} ${time(slice.to - slice.from)}` + (slice.why ? `: ${slice.why}` : "") + (slice.place ? ` in ${slice.place}` : "");
  }

  // Outer slices first, so inner ones are drawn over them. What is narrower than half a pixel is not drawn.
  function draw_slices(slices, window, width, y, height) {
    const x_of = (ns) => Math.max(0, Math.min(width, (ns - window[0]) / (window[1] - window[0]) * width));
    return slices.filter((slice) => slice.to > window[0] && slice.from < window[1] && x_of(slice.to) - x_of(slice.from) >= 0.5)
      .map((slice) => svg("rect", { class: `slice ${slice.kind}`, x: x_of(slice.from).toFixed(1), width: (x_of(slice.to) - x_of(slice.from)).toFixed(1), y, height }));
  }

  function draw_states() {
    const sum = data.states.reduce((all, [, ns]) => all + ns, 0), running = data.states.reduce((all, [, ns, runs]) => all + (runs ? ns : 0), 0);
    const rows = data.states.slice().sort((a, b) => b[1] - a[1]);
    return el("div", { class: "part" }, el("h3", { text: `Where the time went: ${time(sum)}` }), el("table", { id: "states" },
      el("thead", {}, el("tr", {}, ...["state", "time", "share", "of running"].map((title, i) => el("th", { scope: "col", class: i > 0 ? "number" : undefined, text: title })))),
      el("tbody", {}, ...rows.map(([state, ns, runs]) => el("tr", {}, el("td", { text: state }), el("td", { class: "number", text: time(ns) }),
        el("td", { class: "number", text: percent(ns, sum) }), el("td", { class: "number", text: runs ? percent(ns, running) : "" }))))));
  }

  // A table that shows ten rows at first. `cells` makes the texts of a row, of which the first `texts` are no numbers.
  function draw_list(id, title, titles, texts, rows, left_out, cells) {
    let shown = 10;
    const body = el("tbody", {}), more = el("button", { type: "button", onclick() { shown += 50; fill(); } });
    function fill() {
      body.replaceChildren(...rows.slice(0, shown).map((row) => el("tr", {}, ...cells(row).map((text, i) =>
        i === 0 ? el("td", { class: "name" }, ...breakable(text)) : el("td", { class: i >= texts ? "number" : undefined, text })))));
      more.hidden = rows.length <= shown;
      more.textContent = `Show ${number(Math.min(50, rows.length - shown))} more of ${number(rows.length)}`;
    }
    fill();
    return el("div", { class: "part wide" }, el("h3", { text: title }), el("table", { id },
      el("thead", {}, el("tr", {}, ...titles.map((text, i) => el("th", { scope: "col", class: i >= texts ? "number" : undefined, text })))), body),
    more, left_out > 0 ? el("p", { class: "muted", text: `and ${number(left_out)} more` }) : null);
  }

  const draw_interpreted = () => draw_list("interpreted", "Hot but interpreted, with callees that are interpreted, too",
    ["method", "why", "interpreted", "calls", "first call", "last call"], 2, data.interpreted, data.interpreted_left_out,
    ([iseq, why, calls, ns, first, last]) => [S[iseq], S[why], time(ns), number(calls), time(first), time(last)]);
  const draw_gains = () => draw_list("gains", "Estimated gain, if slow calls (exited, or interpreted afterwards) took as long as compiled ones",
    ["method", "gain", "slow calls", "each", "compiled calls", "each"], 1, data.gains, data.gains_left_out,
    ([iseq, gain, slow, slow_ns, compiled, compiled_ns]) => [S[iseq], time(gain), number(slow), time(slow_ns), number(compiled), time(compiled_ns)]);

  $("cost").hidden = !timed;
  if (timed) {
    decode();
    $("cost-sentence").textContent = `${data.cost.sentence[0].toUpperCase()}${data.cost.sentence.slice(1)}.`;
    const advice = [data.cost.advice, data.cost.others].filter(Boolean).join("; ");
    $("cost-advice").textContent = advice === "" ? "" : `${advice[0].toUpperCase()}${advice.slice(1)}.`;
    $("cost-tables").replaceChildren(...(data.states.length > 0 ? [draw_states()] : []), ...(data.interpreted.length > 0 ? [draw_interpreted()] : []),
      ...(data.gains.length > 0 ? [draw_gains()] : []));
  }
  return { timed, slices_of, innermost_at, line_of, draw_slices };
}
