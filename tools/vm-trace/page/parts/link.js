// The page's address keeps the view, so that a link shows it again: the tab, the window of time, what is searched, and
// the order of flame graphs.
"use strict";
function link_view(page_window, tabs) {
  const search = document.getElementById("search");
  const modes = [...document.querySelectorAll(".flame-modes")];

  function write() {
    const parts = new URLSearchParams();
    if (tabs.chosen()) parts.set("tab", tabs.chosen());
    if (!page_window.is_whole()) parts.set("window", page_window.get().map(Math.round).join("-"));
    if (search.value !== "") parts.set("search", search.value);
    for (const { id, dataset } of modes) {
      if (dataset.order !== "callers") parts.set(id, [dataset.order, dataset.center].filter(Boolean).join(" "));
    }
    const text = parts.toString();
    if (location.hash.slice(1) !== text) history.replaceState(null, "", `#${text}`);
  }

  function read() {
    const parts = new URLSearchParams(location.hash.slice(1));
    const window = (parts.get("window") || "").split("-").map(Number);
    if (window.length === 2 && window[0] < window[1]) page_window.set(...window);
    if (parts.has("search")) {
      search.value = parts.get("search");
      search.dispatchEvent(new Event("input"));
    }
    if (parts.has("tab")) tabs.choose(parts.get("tab"));
    for (const group of modes) {
      const [mode, ...center] = (parts.get(group.id) || "").split(" ");
      if (mode !== "") group.dispatchEvent(new CustomEvent("choose", { detail: { mode, center: center.join(" ") } }));
    }
  }

  read();
  page_window.follow("link", write);
  tabs.follow(write);
  search.addEventListener("input", write);
  for (const group of modes) group.addEventListener("chosen", write);
}
