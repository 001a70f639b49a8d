// The sources of files with exits, from the part of #data that --sources makes:
//
//   sources  [path, note ("": none), ns lost, exits, fallbacks, [text of each line],
//            [costly line ...]], the files that cost most first; sources_left_out
//            a costly line: [line (0: none), ns lost, exits, fallbacks, [reason ...]]
//            a reason: [reason, insn, ns lost, exits, fallbacks, number of these exits or fallbacks (see bins.js)]; the
//            next number is of the ns that recorded ones lost
"use strict";
function sources_view({ data, S, bins, search, tabs, page_window, breakable, $, el, number, plural, time, time_column }) {
  const CONTEXT = 4; // lines shown around a line with exits; the others are folded
  const LOST = 0, EXITS = 1, FALLBACKS = 2; // costs
  const add = (parts) => [0, 1, 2].map((i) => parts.reduce((sum, costs) => sum + costs[i], 0));

  const reason_of = ([reason, insn, lost, exits, fallbacks, counts]) => ({
    what: `${S[reason] || "(unknown)"}${S[insn] ? `, ${S[insn]}` : ""}`, whole: [lost, exits, fallbacks], counts,
  });
  const files = (data.sources || []).map(([path, note, lost, exits, fallbacks, text, lines]) => ({
    path: S[path], note, text, whole: [lost, exits, fallbacks], unfolded: new Set(),
    all: lines.map(([line, , , , reasons]) => ({ line, reasons: reasons.map(reason_of) })),
  }));
  const by_path = new Map(files.map((file) => [file.path, file]));

  function costs_of({ whole, counts }) {
    if (!bins.range()) return whole;
    const count = bins.sum(counts), lost = bins.sum(counts + 1);
    return whole[FALLBACKS] > 0 ? [lost, 0, count] : [lost, count, 0];
  }

  // The lines with exits that are in the window and that the search finds, and what they cost.
  function sum_up(file) {
    const matches = ({ line, reasons }) =>
      search.matches(`${file.path}:${line} ${file.text[line - 1] || ""} ${reasons.map(({ what }) => what).join(" ")}`);
    file.lines = file.all.filter(matches).map(({ line, reasons }) => {
      const costly = reasons.map((reason) => ({ what: reason.what, costs: costs_of(reason) }))
        .filter(({ costs }) => costs.some((cost) => cost > 0));
      return { line, reasons: costly, costs: add(costly.map(({ costs }) => costs)) };
    }).filter(({ reasons }) => reasons.length > 0);
    file.costs = add(file.lines.map(({ costs }) => costs));
  }

  let lost_column = time; // of the file that is drawn
  const measures = [["lost", (ns) => lost_column(ns)], ["exits", number], ["fallbacks", number]]
    .map(([name, text], i) => ({ name, text, i })).filter(({ i }) => files.some((file) => file.whole[i] > 0));
  const number_cell = (text) => el("td", { class: "number", text });
  const margin = (costs) => measures.map(({ text, i }) => number_cell(costs && costs[i] > 0 ? text(costs[i]) : ""));
  const summary_of = ([lost, exits, fallbacks]) => [
    lost > 0 ? `${time(lost)} lost` : "",
    exits > 0 ? plural(exits, "exit") : "",
    fallbacks > 0 ? plural(fallbacks, "fallback") : "",
  ].filter(Boolean).join(", ");

  function line_rows(file, line, cost) {
    const text = file.text[line - 1] || "", indent = " ".repeat(text.search(/\S|$/));
    const row = el("tr", {
      class: [cost && "costly", file.target === line && "target"].filter(Boolean).join(" ") || undefined,
      "data-line": line > 0 ? line : undefined,
      tabindex: cost || file.target === line ? "-1" : undefined,
    }, ...margin(cost && cost.costs),
    el("td", { class: "number muted", text: line > 0 ? line : "" }), el("td", { class: "code", text }));
    const reasons = (cost ? cost.reasons : []).map(({ what, costs }) =>
      el("tr", { class: "why" }, ...margin(costs), el("td"), el("td", { class: "code", text: `${indent}^ ${what}` })));
    return [row, ...reasons];
  }

  const range = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

  // The numbers of the lines to show, in order; a pair stands for those from .. to that are folded.
  function parts_of(file) {
    const target = file.target === null ? [] : [file.target];
    const numbers = [...new Set([...file.lines.map(({ line }) => line), ...target])];
    const parts = [];
    const shown = new Set(numbers.flatMap((line) => range(line - CONTEXT, line + CONTEXT)));
    for (let line = 1; line <= file.text.length; line++) {
      const previous = parts[parts.length - 1];
      if (shown.has(line)) parts.push(line);
      else if (Array.isArray(previous)) previous[1] = line;
      else parts.push([line, line]);
    }
    const beyond = numbers.filter((line) => line === 0 || line > file.text.length); // a trace can name any
    const is_open = (part) => Array.isArray(part) && (file.unfolded.has(part[0]) || part[0] === part[1]);
    return parts.concat(beyond).flatMap((part) => (is_open(part) ? range(...part) : [part]));
  }

  // Stands for the lines from .. to; a click shows them.
  function folded_row(file, from, to) {
    const unfold = el("button", {
      type: "button", text: `… ${plural(to - from + 1, "line")}`,
      onclick() { file.unfolded.add(from); draw(file); },
    });
    return el("tr", { class: "folded" }, ...margin(), el("td"), el("td", {}, unfold));
  }

  function draw(file) {
    const costs = new Map(file.lines.map((line) => [line.line, line]));
    lost_column = time_column(file.lines.flatMap((line) => [line, ...line.reasons]).map((row) => row.costs[0]));
    const rows = parts_of(file).flatMap((part) => (
      Array.isArray(part) ? [folded_row(file, ...part)] : line_rows(file, part, costs.get(part))));
    const titles = [...measures.map(({ name }) => name), "line"];
    const head = titles.map((text) => el("th", { scope: "col", class: "number", text }));
    file.body.replaceChildren(el("thead", {}, el("tr", {}, ...head, el("th"))), el("tbody", {}, ...rows));
  }

  // `place`: "path:line". Returns null if its file is not among the sources.
  function line_at(place) {
    const match = /^(.*):(\d+)$/s.exec(place), file = match && by_path.get(match[1]);
    return file && file.all.some(({ line }) => line === +match[2]) ? { file, line: +match[2] } : null;
  }

  function jump({ file, line }) {
    for (const other of files) other.target = null;
    for (const row of $("sources").querySelectorAll(".target")) row.classList.remove("target");
    file.target = line;
    tabs.reveal($("sources-section"));
    draw_all(); // the window or the search may have left it out
    file.details.open = true;
    draw(file);
    const row = file.body.querySelector(".target");
    row.scrollIntoView({ block: "center" });
    row.focus({ preventScroll: true });
  }

  // The place of a frame: a link, if the source is here.
  function place_link(place, text) {
    const at = line_at(place);
    if (!at) return el("span", { class: "place" }, ...breakable(text));
    return el("button", { type: "button", class: "place", onclick() { jump(at); } }, ...breakable(text));
  }

  // Files without a line that counts are not listed, but for one that a link has opened.
  function draw_all() {
    for (const file of files) sum_up(file);
    const listed = files.filter((file) => file.lines.length > 0 || file.target !== null);
    if (bins.range() || search.any()) {
      listed.sort(({ costs: a }, { costs: b }) =>
        b[LOST] - a[LOST] || b[EXITS] - a[EXITS] || b[FALLBACKS] - a[FALLBACKS]);
    }
    for (const file of listed) {
      file.summary.textContent = ` ${summary_of(file.costs)}${file.note ? ` – ${file.note}` : ""}`;
      if (file.body.firstChild) draw(file);
    }
    $("sources").replaceChildren(...listed.map((file) => file.details));
    const others = files.length - listed.length, left_out = data.sources_left_out;
    $("sources-more").textContent = [
      others > 0 ? `${plural(others, "file")} without exits in the window, or that the search does not find` : "",
      left_out > 0 ? `and ${plural(left_out, "more file")}, which cost less` : "",
    ].filter(Boolean).join("; ");
  }

  $("sources-section").hidden = files.length === 0;
  for (const file of files) {
    file.target = null;
    file.body = el("table", {});
    file.summary = el("span", { class: "muted" });
    const summary = el("summary", {}, el("span", { class: "mono", text: file.path || "(no file)" }), file.summary);
    const ontoggle = () => { if (file.details.open && !file.body.firstChild) draw(file); };
    file.details = el("details", { ontoggle }, summary, el("div", { class: "scroll" }, file.body));
  }
  if (files.length > 0) {
    page_window.follow("sources", draw_all);
    search.follow(draw_all);
    draw_all();
  }
  return { place_link };
}
