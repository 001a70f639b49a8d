// The sources of files with exits, from the part of #data that --sources makes:
//
//   sources  [path, note ("": none), ns lost, exits, fallbacks, [text of each line],
//            [costly line ...]], the files that cost most first; sources_left_out
//            a costly line: [line (0: none), ns lost, exits, fallbacks, [reason ...]]
//            a reason: [reason, insn, ns lost, exits, fallbacks]
"use strict";
function sources_view({ data, S, $, el, number, plural, time }) {
  const CONTEXT = 4; // lines shown around a line with exits; the others are folded
  const files = (data.sources || []).map(([path, note, lost, exits, fallbacks, text, lines]) => ({
    path: S[path], note, lost, exits, fallbacks, text, lines, unfolded: new Set(),
  }));
  const by_path = new Map(files.map((file) => [file.path, file]));
  const measures = [["lost", time], ["exits", number], ["fallbacks", number]]
    .map(([name, text], i) => ({ name, text, i })).filter(({ name }) => files.some((file) => file[name] > 0));
  const number_cell = (text) => el("td", { class: "number", text });
  const margin = (costs) => measures.map(({ text, i }) => number_cell(costs && costs[i] > 0 ? text(costs[i]) : ""));
  const summary_of = ({ lost, exits, fallbacks }) => [
    lost > 0 ? `${time(lost)} lost` : "",
    exits > 0 ? plural(exits, "exit") : "",
    fallbacks > 0 ? plural(fallbacks, "fallback") : "",
  ].filter(Boolean).join(", ");

  function line_rows(file, line, cost) {
    const text = file.text[line - 1] || "", indent = " ".repeat(text.search(/\S|$/));
    const row = el("tr", {
      class: cost ? `costly${file.target === line ? " target" : ""}` : undefined,
      "data-line": line > 0 ? line : undefined,
      tabindex: cost ? "-1" : undefined,
    }, ...margin(cost && cost.slice(1, 4)),
    el("td", { class: "number muted", text: line > 0 ? line : "" }), el("td", { class: "code", text }));
    const reasons = (cost ? cost[4] : []).map(([reason, insn, ...costs]) => {
      const what = `${S[reason] || "(unknown)"}${S[insn] ? `, ${S[insn]}` : ""}`;
      return el("tr", { class: "why" }, ...margin(costs), el("td"),
        el("td", { class: "code", text: `${indent}^ ${what}` }));
    });
    return [row, ...reasons];
  }

  const range = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

  // The numbers of the lines to show, in order; a pair stands for those from .. to that are folded.
  function parts_of(file) {
    const numbers = file.lines.map(([line]) => line), parts = [];
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
    const costs = new Map(file.lines.map((line) => [line[0], line]));
    const rows = parts_of(file).flatMap((part) => (
      Array.isArray(part) ? [folded_row(file, ...part)] : line_rows(file, part, costs.get(part))));
    const titles = [...measures.map(({ name }) => name), "line"];
    const head = titles.map((text) => el("th", { scope: "col", class: "number", text }));
    file.body.replaceChildren(el("thead", {}, el("tr", {}, ...head, el("th"))), el("tbody", {}, ...rows));
  }

  // `place`: "path:line". Returns null if its file is not among the sources.
  function line_at(place) {
    const match = /^(.*):(\d+)$/s.exec(place), file = match && by_path.get(match[1]);
    return file && file.lines.some(([line]) => line === +match[2]) ? { file, line: +match[2] } : null;
  }

  function jump({ file, line }) {
    for (const other of files) other.target = null;
    for (const row of $("sources").querySelectorAll(".target")) row.classList.remove("target");
    file.target = line;
    file.details.open = true;
    draw(file);
    const row = file.body.querySelector(".target");
    row.scrollIntoView({ block: "center" });
    row.focus({ preventScroll: true });
  }

  // The place of a frame: a link, if the source is here.
  function place_link(place, text) {
    const at = line_at(place);
    if (!at) return el("span", { class: "place", text });
    return el("button", { type: "button", class: "place", text, onclick() { jump(at); } });
  }

  $("sources-section").hidden = files.length === 0;
  for (const file of files) {
    file.body = el("table", {});
    const costs = ` ${summary_of(file)}${file.note ? ` – ${file.note}` : ""}`;
    const summary = el("summary", {}, el("span", { class: "mono", text: file.path || "(no file)" }),
      el("span", { class: "muted", text: costs }));
    const ontoggle = () => { if (file.details.open && !file.body.firstChild) draw(file); };
    file.details = el("details", { ontoggle }, summary, el("div", { class: "scroll" }, file.body));
  }
  $("sources").replaceChildren(...files.map((file) => file.details));
  const left_out = data.sources_left_out;
  $("sources-more").textContent = left_out > 0 ? `and ${plural(left_out, "more file")}, which cost less` : "";
  return { place_link };
}
