// The sources of files with exits, from the part of #data that --sources makes:
//
//   sources  [path, note ("": none), ns lost, exits, fallbacks, [text of each line], [line with exits ...]], what cost most first       sources_left_out
//            a line with exits: [line (0: none), ns lost, exits, fallbacks, [[reason, insn, ns lost, exits, fallbacks] ...]]
"use strict";
function sources_view({ data, S, $, el, number, plural, time }) {
  const CONTEXT = 4; // lines shown around a line with exits; the others are folded
  const files = (data.sources || []).map(([path, note, lost, exits, fallbacks, text, lines]) => ({ path: S[path], note, lost, exits, fallbacks, text, lines, unfolded: new Set() }));
  const by_path = new Map(files.map((file) => [file.path, file]));
  const measures = [["lost", time], ["exits", number], ["fallbacks", number]].map(([name, text], i) => ({ name, text, i }))
    .filter(({ name }) => files.some((file) => file[name] > 0));
  const margin = (costs) => measures.map(({ text, i }) => el("td", { class: "number", text: costs && costs[i] > 0 ? text(costs[i]) : "" }));
  const summary_of = (file) => [file.lost > 0 ? `${time(file.lost)} lost` : "", file.exits > 0 ? plural(file.exits, "exit") : "", file.fallbacks > 0 ? plural(file.fallbacks, "fallback") : ""].filter(Boolean).join(", ");

  function line_rows(file, line, cost) {
    const row = el("tr", { class: cost ? `costly${file.target === line ? " target" : ""}` : undefined, "data-line": line > 0 ? line : undefined, tabindex: cost ? "-1" : undefined },
      ...margin(cost && cost.slice(1, 4)), el("td", { class: "number muted", text: line > 0 ? line : "" }), el("td", { class: "code", text: file.text[line - 1] || "" }));
    const indent = " ".repeat((file.text[line - 1] || "").search(/\S|$/));
    const reasons = cost ? cost[4].map(([reason, insn, ...costs]) => el("tr", { class: "why" }, ...margin(costs), el("td"),
      el("td", { class: "code", text: `${indent}^ ${S[reason] || "(unknown)"}${S[insn] ? `, ${S[insn]}` : ""}` }))) : [];
    return [row, ...reasons];
  }

  // The numbers of the lines to show, in order; a pair stands for those from .. to that are folded.
  function parts_of(file) {
    const numbers = file.lines.map(([line]) => line), parts = [];
    const shown = new Set(numbers.flatMap((line) => Array.from({ length: 2 * CONTEXT + 1 }, (_, i) => line - CONTEXT + i)));
    for (let line = 1; line <= file.text.length; line++) {
      const previous = parts[parts.length - 1];
      if (shown.has(line)) parts.push(line);
      else if (Array.isArray(previous)) previous[1] = line;
      else parts.push([line, line]);
    }
    const beyond = numbers.filter((line) => line === 0 || line > file.text.length); // a trace can name any
    return parts.concat(beyond).flatMap((part) => (Array.isArray(part) && (file.unfolded.has(part[0]) || part[0] === part[1]) ? Array.from({ length: part[1] - part[0] + 1 }, (_, i) => part[0] + i) : [part]));
  }

  function draw(file) {
    const costs = new Map(file.lines.map((line) => [line[0], line]));
    const rows = parts_of(file).flatMap((part) => (Array.isArray(part)
      ? [el("tr", { class: "folded" }, ...margin(), el("td"), el("td", {}, el("button", { type: "button", text: `… ${plural(part[1] - part[0] + 1, "line")}`, onclick() { file.unfolded.add(part[0]); draw(file); } })))]
      : line_rows(file, part, costs.get(part))));
    file.body.replaceChildren(el("thead", {}, el("tr", {}, ...measures.map(({ name }) => el("th", { scope: "col", class: "number", text: name })), el("th", { scope: "col", class: "number", text: "line" }), el("th"))), el("tbody", {}, ...rows));
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
    return at ? el("button", { type: "button", class: "place", text, onclick() { jump(at); } }) : el("span", { class: "place", text });
  }

  $("sources-section").hidden = files.length === 0;
  for (const file of files) {
    file.body = el("table", {});
    file.details = el("details", { ontoggle() { if (file.details.open && !file.body.firstChild) draw(file); } },
      el("summary", {}, el("span", { class: "mono", text: file.path || "(no file)" }), el("span", { class: "muted", text: ` ${summary_of(file)}${file.note ? ` – ${file.note}` : ""}` })),
      el("div", { class: "scroll" }, file.body));
  }
  $("sources").replaceChildren(...files.map((file) => file.details));
  $("sources-more").textContent = data.sources_left_out > 0 ? `and ${plural(data.sources_left_out, "more file")}, which cost less` : "";
  return { place_link };
}
