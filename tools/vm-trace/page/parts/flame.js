// A flame graph in the element `id`, which has companions: id-sum, id-path, id-detail. Three views of the same
// stacks: callers first; innermost first (inverted); one frame with its callers above and its callees below (sandwich).
"use strict";

// Nodes behind their parents, the first one is the root: { parent, text, total }. Adds children, index
// and depth.
function flame_nodes(nodes) {
  nodes.forEach((node, index) => {
    const depth = index === 0 ? 0 : nodes[node.parent].depth + 1;
    Object.assign(node, { index, children: [], above: [], value: 0, depth });
    if (index > 0) nodes[node.parent].children.push(node);
  });
  for (const node of nodes) node.children.sort((a, b) => b.total - a.total);
  return nodes;
}

// The caller sets `value` of the nodes before draw, and draws again when the window or the search
// changes. class_of, name_of, describe and tip_of (lines) tell about a node; sum_of about the value of the nodes that
// match the search (null: none is searched).
// `sums`: further members of nodes that are added up where nodes become one. amount_of(node, before): where two runs
// are compared, the value of a node in either; the caller's `value` is then that of the run that `side.before` says.
function flame_view({
  id, nodes: stacks, sums = [], amount_of, side, search, $, el, show_tip, hide_tip, empty, class_of, name_of, describe,
  tip_of, sum_of,
}) {
  const ROW_HEIGHT = 20;
  const MODES = [["callers", "Callers first"], ["inverted", "Innermost first"], ["sandwich", "One frame"]];
  const box = $(id), part = (name) => $(`${id}-${name}`);
  let nodes = stacks, root_index = 0, mode = "callers", center = "";

  const segments = { class: "segments flame-modes", role: "group" };
  const modes = el("div", { ...segments, "aria-label": "Order of frames", id: `${id}-modes` },
    ...MODES.map(([name, text]) => el("button", {
      type: "button", "data-mode": name, text, onclick() { choose_mode(name); },
    })));
  part("path").before(modes);
  const sides = el("div", { ...segments, "aria-label": "Run that is drawn" },
    ...[[false, "Now"], [true, "Before"]].map(([before, text]) => el("button", {
      type: "button", text, "aria-pressed": String(!before), onclick(event) {
        side.before = before;
        for (const button of sides.children) button.setAttribute("aria-pressed", String(button === event.target));
        side.redraw();
      } })));
  if (amount_of) modes.after(sides);

  function change_text(node) {
    const now = amount_of(node, false), was = amount_of(node, true);
    if (was === 0 && now === 0) return "in neither run";
    if (was === 0) return "new: not in the run before";
    if (now === 0) return "gone";
    return `${now >= was ? "+" : "\u2212"}${(Math.abs(now - was) / was * 100).toFixed(1)} % beside the run before`;
  }

  // `frame`: the one in the middle; else the one that is shown, or in which most was spent.
  function choose_mode(name, frame) {
    const known = (text) => stacks.some((node) => node.index !== 0 && node.text === text);
    if (name === "sandwich" && mode !== name) {
      center = [frame, root_index !== 0 && nodes[root_index].text].find(known) || flame_heaviest(stacks, sums);
    }
    mode = name;
    root_index = 0;
    draw();
  }
  modes.addEventListener("choose", ({ detail }) => {
    if (MODES.some(([name]) => name === detail.mode)) choose_mode(detail.mode, detail.center);
  });

  function build() {
    if (mode === "inverted") nodes = flame_inverted(stacks, sums);
    else if (mode === "sandwich") nodes = flame_sandwich(stacks, center, sums);
    else nodes = stacks;
    if (root_index >= nodes.length) root_index = 0;
    for (const button of modes.children) button.setAttribute("aria-pressed", String(button.dataset.mode === mode));
    const chosen = { order: mode, center: mode === "sandwich" ? center : "" };
    if (modes.dataset.order === chosen.order && modes.dataset.center === chosen.center) return;
    Object.assign(modes.dataset, chosen);
    modes.dispatchEvent(new Event("chosen"));
  }

  const all_p = (node) => node.index === 0 && mode !== "sandwich";

  function ancestors(node) {
    const list = [];
    while (node.index !== 0) list.unshift(node = nodes[node.parent]);
    return list;
  }

  const changed = (node) => flame_change(amount_of(node, false), amount_of(node, true));
  const full_class = (node) => `frame ${all_p(node) ? "all" : amount_of ? changed(node) : class_of(node)}`.trim();
  const short_name = (node) => (all_p(node) ? node.text : name_of(node));

  function draw() {
    build();
    modes.hidden = stacks[0].value === 0 && stacks[0].total === 0;
    if (nodes[0].value === 0) {
      box.replaceChildren(el("p", { class: "empty", text: empty }));
      box.style.height = "auto";
      part("sum").textContent = part("detail").textContent = "";
      part("path").replaceChildren();
      return;
    }
    if (nodes[root_index].value === 0) root_index = 0;
    const root = nodes[root_index];
    const width = box.clientWidth - 1;
    const searching = search.any(), matches = (node) => searching && search.matches(node.text);
    const blocks = [];
    let deepest = 0, highest = 0;
    const block = (node, left, share, above) => {
      const pixels = share * width;
      if (pixels < 1.5) return false;
      deepest = Math.max(deepest, node.depth);
      highest = Math.min(highest, node.depth);
      const center_p = mode === "sandwich" && node === root;
      blocks.push([node, el("div", {
        class: full_class(node) + (above ? " above" : "") + (center_p ? " center" : "") +
          (matches(node) ? " match" : ""),
        role: "treeitem", "data-node": node.index,
        "aria-label": describe(node), "aria-level": Math.abs(node.depth) + 1, tabindex: node === root ? "0" : "-1",
        style: `left:${(left * width).toFixed(1)}px;` +
          `width:${Math.max(1, pixels).toFixed(1)}px${pixels < 12 ? ";padding:0" : ""}`,
        text: pixels < 24 ? "" : short_name(node),
      })]);
      return true;
    };
    for (const node of ancestors(root)) block(node, 0, 1, true);
    const stack = [[root, 0]];
    while (stack.length > 0) {
      const [node, left] = stack.pop();
      if (!block(node, left, node.value / root.value, false)) continue;
      for (const list of [node.above, node.children]) {
        let right = left;
        for (const child of list) right += child.value / root.value;
        for (const child of [...list].reverse()) { // the leftmost is next
          stack.push([child, right -= child.value / root.value]);
        }
      }
    }
    for (const [node, drawn] of blocks) drawn.style.top = `${(node.depth - highest) * ROW_HEIGHT}px`;
    const focused = box.contains(document.activeElement) && document.activeElement.dataset.node;
    box.replaceChildren(...blocks.map(([, drawn]) => drawn),
      el("div", { style: `height:${(deepest - highest + 1) * ROW_HEIGHT}px` }));
    box.style.height = "auto";
    box.classList.toggle("searching", searching);
    if (focused) focus_node(root_index);

    // What matches counts once, however many of its frames do.
    let matched = 0;
    if (searching) {
      const left = [stacks[0]];
      while (left.length > 0) {
        const node = left.pop();
        if (matches(node)) matched += node.value;
        else for (const child of node.children) if (child.value > 0) left.push(child);
      }
    }
    part("sum").textContent = sum_of(searching ? matched : null);
    const kept = refill(part("path"), ...(root_index === 0 ? [] : [...ancestors(root), root]).flatMap((node, i) => [
      i > 0 ? " › " : "", el("button", { type: "button", text: short_name(node), onclick() { zoom(node.index); } })]));
    if (!kept) focus_node(root_index);
    part("detail").textContent = root_index === 0 && all_p(root) ? "" : describe(root);
  }

  // Where one frame is in the middle, another one takes its place.
  function zoom(index) {
    if (mode === "sandwich") center = nodes[index].text;
    else root_index = index;
    draw();
  }

  function focus_node(index) {
    const block = box.querySelector(`[data-node="${index}"]`);
    if (!block) return;
    for (const other of box.querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
    block.tabIndex = 0;
    block.focus();
  }

  const node_of = (event) => {
    const block = event.target.closest("[data-node]");
    return block && nodes[block.dataset.node];
  };
  box.addEventListener("click", (event) => { const node = node_of(event); if (node) zoom(node.index); });
  box.addEventListener("pointermove", (event) => {
    const node = node_of(event);
    if (!node) { hide_tip(); return; }
    const lines = tip_of(node, nodes[root_index]);
    const change = amount_of ? [change_text(node)] : [];
    show_tip(event, el("div", { class: "mono", text: node.text }),
      ...[...lines, ...change].map((text) => el("div", { class: "muted", text })));
  });
  box.addEventListener("pointerleave", hide_tip);
  box.addEventListener("focusin", (event) => {
    const node = node_of(event);
    if (node) part("detail").textContent = describe(node);
  });
  box.addEventListener("keydown", (event) => {
    const node = node_of(event);
    if (!node) return;
    const drawn = (list) => list.filter((other) => box.querySelector(`[data-node="${other.index}"]`));
    const over = node.depth < 0, parent = nodes[node.parent];
    const siblings = node.index === 0 ? [node] : drawn(over ? parent.above : parent.children);
    const at = siblings.indexOf(node);
    const up = over || (node.index === 0 && mode === "sandwich") ? drawn(node.above)[0] : parent;
    const next = {
      ArrowDown: () => (over ? parent : drawn(node.children)[0]), ArrowUp: () => up,
      ArrowLeft: () => siblings[at - 1], ArrowRight: () => siblings[at + 1], Home: () => nodes[0],
    }[event.key];
    if (next) {
      event.preventDefault();
      const to = next();
      if (to) focus_node(to.index);
    }
    else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      zoom(node.index);
    }
    else if (event.key === "Escape" && mode === "sandwich") choose_mode("callers");
    else if (event.key === "Escape") zoom(root_index === 0 ? 0 : nodes[root_index].parent);
  });
  return { draw, zoom };
}
