// The one search of the page. Every section follows it: tables show the rows that match, graphs mark what does. A text
// matches if it has all words.
"use strict";
function page_search($) {
  const views = [];
  let words = [];

  function set(text) {
    $("search").value = text;
    $("search").dispatchEvent(new Event("input"));
  }

  $("search").addEventListener("input", (event) => {
    words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const draw of views) draw();
  });
  $("search").addEventListener("keydown", (event) => { if (event.key === "Escape") set(""); });
  addEventListener("keydown", (event) => {
    const writes = event.target.closest && event.target.closest("input, textarea, select");
    if (event.key !== "/" || writes || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    $("search").focus();
    $("search").select();
  });

  return {
    set,
    any: () => words.length > 0,
    matches(text) {
      if (words.length === 0) return true;
      const lower = text.toLowerCase();
      return words.every((word) => lower.includes(word));
    },
    follow(draw) { views.push(draw); },
  };
}
