// One subject of the page at a time, so that the first screen has what matters. A section belongs to the tab that its
// data-tab names; a tab is there if one of its sections is not hidden. The last tab shows all of them.
"use strict";
function page_tabs({ $, el, search }) {
  const EVERYTHING = "All";
  const sections = [...document.querySelectorAll("main > section")];
  const names = [...new Set(sections.map(({ dataset }) => dataset.tab)), EVERYTHING];
  const views = [];
  let chosen = names[0];

  const filled = (name) => name === EVERYTHING || sections.some(({ dataset, hidden }) => dataset.tab === name && !hidden);

  function draw() {
    refill($("tabs"), ...names.filter(filled).map((name) =>
      el("button", { type: "button", "aria-pressed": String(name === chosen), text: name, onclick() { choose(name); } })));
    for (const section of sections) section.classList.toggle("elsewhere", ![EVERYTHING, section.dataset.tab].includes(chosen));
  }

  // What is not shown has no width, so graphs are drawn again.
  function choose(name) {
    if (name === chosen || !names.includes(name)) return;
    chosen = name;
    draw();
    dispatchEvent(new Event("resize"));
    for (const view of views) view();
  }

  // Sections get something when calls are decoded, or another kind of events is chosen.
  const observer = new MutationObserver(draw);
  for (const section of sections) observer.observe(section, { attributeFilter: ["hidden"] });
  search.follow(() => { if (search.any() && chosen === names[0]) choose(EVERYTHING); });
  addEventListener("beforeprint", () => choose(EVERYTHING));
  draw();

  return {
    choose,
    chosen: () => (chosen === names[0] ? null : chosen),
    reveal(section) { if (chosen !== EVERYTHING) choose(section.dataset.tab); },
    follow(view) { views.push(view); },
  };
}
