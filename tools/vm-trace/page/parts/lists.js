// Tables of sums, which follow the search.
"use strict";
function list_view({ el, breakable, number, with_times, search }) {
  const shown_of = new Map(); // how many rows a table shows, by its id
  const column_head = (text, is_number) => el("th", { scope: "col", class: is_number ? "number" : undefined, text });
  const number_cell = (text) => el("td", { class: "number", text });

  // A table that shows ten rows at first. `cells` makes the texts of a row, and { ns } for a duration; the first
  // `texts` of them are no numbers, and are searched.
  function draw_list({ id, title, titles, texts, rows, left_out, cells }) {
    const found = search.any() ? rows.filter((row) => search.matches(cells(row).slice(0, texts).join(" "))) : rows;
    const body = el("tbody", {});
    const more = el("button", { type: "button", onclick() { shown_of.set(id, shown() + 50); fill(); } });
    const shown = () => shown_of.get(id) || 10;
    const text_cell = (text, i) => el("td", { class: i === 0 ? "name" : undefined }, ...breakable(text));
    const draw_cell = (text, i) => (i < texts ? text_cell(text, i) : number_cell(text));
    const why_none = () => (search.any() ? "Nothing matches." : "None in the window.");
    const nothing = () => el("tr", {}, el("td", { class: "empty", colspan: titles.length, text: why_none() }));
    function fill() {
      const rows_shown = with_times(found.slice(0, shown()).map(cells));
      body.replaceChildren(...rows_shown.map((row) => el("tr", {}, ...row.map(draw_cell))));
      if (found.length === 0) body.append(nothing());
      more.hidden = found.length <= shown();
      more.textContent = `Show ${number(Math.min(50, found.length - shown()))} more of ${number(found.length)}`;
    }
    fill();
    const head = el("tr", {}, ...titles.map((text, i) => column_head(text, i >= texts)));
    return el("div", { class: "part wide" }, el("h3", { text: title }),
      el("table", { id }, el("thead", {}, head), body), more,
      left_out > 0 ? el("p", { class: "muted", text: `and ${number(left_out)} more, which are not searched` }) : null);
  }

  return { column_head, number_cell, draw_list };
}
