// Texts of compiled versions, and what happened at each instruction:
//
//   code  [iseq, ns lost, exits, [version ...]], those that cost most first; code_left_out
//         a version: [number, number of the version that it is compared with (0: none), bytes of a text that was too
//         large to keep (0: it is here), why the version before was given up, [line ...]]
//         a line: [its number (0: only the version before has it), 0: the same, 1: added, 2: removed,
//         whether it is shown at first, ns lost, exits, fallbacks, reason of most of them, text]
"use strict";
function code_view({ data, S, search, $, el, number, plural, time, time_column }) {
  const CHANGES = ["", "+", "−"], CLASSES = ["", "added", "removed"];
  let whole = false; // all lines are shown

  const line_of = ([line, change, shown, lost, exits, fallbacks, reason, text]) =>
    ({ line, change, shown: shown === 1, lost, exits, fallbacks, reason: S[reason], text });
  const iseqs = (data.code || []).map(([iseq, lost, exits, versions]) => ({
    name: S[iseq], lost, exits,
    versions: versions.map(([version, before, bytes, why, lines]) =>
      ({ version, before, bytes, why: S[why], lines: lines.map(line_of) })),
  }));

  const code_cell = (text) => el("td", { class: "code", text });

  function rows_of(version, measures) {
    const margin = (text_of) => measures.map((measure) => el("td", { class: "number", text: text_of(measure) }));
    const empty = () => [...margin(() => ""), el("td"), el("td")]; // all cells before the text
    const row_of = (line) => {
      const costly = line.exits > 0 || line.fallbacks > 0;
      const row = el("tr", { class: [costly && "costly", CLASSES[line.change]].filter(Boolean).join(" ") || undefined },
        ...margin(({ of, text }) => (line[of] > 0 ? text(line[of]) : "")),
        el("td", { class: "number muted", text: line.line || "" }), code_cell(CHANGES[line.change]), code_cell(line.text));
      if (!costly) return [row];
      const indent = " ".repeat(line.text.search(/\S|$/));
      return [row, el("tr", { class: "why" }, ...empty(), code_cell(`${indent}^ ${line.reason}`))];
    };
    let folded = 0;
    const fold = () => {
      const text = `… ${plural(folded, "line")}`;
      const row = folded > 0 ? [el("tr", { class: "folded" }, ...empty(), el("td", { class: "muted", text }))] : [];
      folded = 0;
      return row;
    };
    const rows = version.lines.flatMap((line) => {
      if (whole || line.shown) return [...fold(), ...row_of(line)];
      folded++;
      return [];
    });
    return [...rows, ...fold()];
  }

  function draw(iseq) {
    const parts = iseq.versions.flatMap((version) => {
      const texts = { lost: time_column(version.lines.map(({ lost }) => lost)), exits: number, fallbacks: number };
      const measures = Object.entries(texts).map(([of, text]) => ({ of, text }))
        .filter(({ of }) => version.lines.some((line) => line[of] > 0));
      const made = `Version ${version.version}${version.why ? `, made after ${version.why}` : ""}`;
      if (version.bytes > 0)
        return [el("h3", { text: `${made}: ${number(version.bytes)} bytes, for which there was no room` })];
      const title = made + (version.before > 0 ? `, compared with version ${version.before}` : "");
      const head = [...measures.map(({ of }) => of), "line"]
        .map((text) => el("th", { scope: "col", class: "number", text }));
      return [el("h3", { text: title }), el("div", { class: "scroll" }, el("table", {},
        el("thead", {}, el("tr", {}, ...head, el("th"), el("th"))), el("tbody", {}, ...rows_of(version, measures))))];
    });
    iseq.body.replaceChildren(...parts);
  }

  const texts_of = ({ lines }) => lines.map(({ text, reason }) => `${text} ${reason}`);
  const found = (iseq) => search.matches([iseq.name, ...iseq.versions.flatMap(texts_of)].join(" "));

  function draw_all() {
    const listed = iseqs.filter(found);
    $("code").replaceChildren(...listed.map((iseq) => iseq.details));
    for (const iseq of listed) if (iseq.details.open) draw(iseq);
    const others = iseqs.length - listed.length;
    $("code-more").textContent = [
      others > 0 ? `${plural(others, "ISEQ")} that the search does not find` : "",
      data.code_left_out > 0 ? `and ${plural(data.code_left_out, "more ISEQ")}: vm-trace history shows them` : "",
    ].filter(Boolean).join("; ");
    const choose = (all) => { whole = all; draw_all(); };
    const button = (text, all) =>
      el("button", { type: "button", "aria-pressed": String(whole === all), text, onclick() { choose(all); } });
    $("code-lines").replaceChildren(button("what exits or changed", false), button("all lines", true));
  }

  $("code-section").hidden = iseqs.length === 0;
  for (const iseq of iseqs) {
    iseq.body = el("div", {});
    const costs = [iseq.lost > 0 ? `${time(iseq.lost)} lost` : "", iseq.exits > 0 ? plural(iseq.exits, "exit") : "",
      plural(iseq.versions.length, "version")].filter(Boolean).join(", ");
    const summary = el("summary", {},
      el("span", { class: "mono", text: iseq.name }), el("span", { class: "muted", text: ` ${costs}` }));
    const ontoggle = () => { if (iseq.details.open && !iseq.body.firstChild) draw(iseq); };
    iseq.details = el("details", { ontoggle }, summary, iseq.body);
  }
  if (iseqs.length > 0) {
    iseqs[0].details.open = true;
    search.follow(draw_all);
    draw_all();
  }
}
