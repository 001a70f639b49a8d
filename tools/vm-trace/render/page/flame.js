// A flame graph in the element `id`, which has companions: id-search, id-sum, id-path, id-detail.
"use strict";

// Nodes behind their parents, the first one is the root: { parent, text, total }. Adds children, index
// and depth.
function flame_nodes(nodes) {
  nodes.forEach((node, index) => {
    Object.assign(node, { index, children: [], value: 0, depth: index === 0 ? 0 : nodes[node.parent].depth + 1 });
    if (index > 0) nodes[node.parent].children.push(node);
  });
  for (const node of nodes) node.children.sort((a, b) => b.total - a.total);
  return nodes;
}

// The caller sets `value` of the nodes before draw. class_of, name_of, describe and tip_of (lines)
// tell about a node; sum_of about the value of the nodes that match the search (null: none is searched).
function flame_view({
  id, nodes, $, el, show_tip, hide_tip, empty, class_of, name_of, describe, tip_of, sum_of,
}) {
  const ROW_HEIGHT = 20;
  const box = $(id), part = (name) => $(`${id}-${name}`);
  let root_index = 0, search = "";

  function ancestors(node) {
    const list = [];
    while (node.index !== 0) list.unshift(node = nodes[node.parent]);
    return list;
  }

  const full_class = (node) => `frame ${node.index === 0 ? "all" : class_of(node)}`.trim();
  const short_name = (node) => (node.index === 0 ? node.text : name_of(node));

  function draw() {
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
    const terms = search.toLowerCase().trim();
    const matches = (node) => terms !== "" && node.text.toLowerCase().includes(terms);
    const blocks = [];
    let deepest = 0;
    const block = (node, left, share, above) => {
      const pixels = share * width;
      if (pixels < 1.5) return false;
      deepest = Math.max(deepest, node.depth);
      blocks.push(el("div", {
        class: full_class(node) + (above ? " above" : "") + (matches(node) ? " match" : ""),
        role: "treeitem", "data-node": node.index,
        "aria-label": describe(node), "aria-level": node.depth + 1, tabindex: node === root ? "0" : "-1",
        style: `left:${(left * width).toFixed(1)}px;top:${node.depth * ROW_HEIGHT}px;` +
          `width:${Math.max(1, pixels).toFixed(1)}px${pixels < 12 ? ";padding:0" : ""}`,
        text: pixels < 24 ? "" : short_name(node),
      }));
      return true;
    };
    for (const node of ancestors(root)) block(node, 0, 1, true);
    const stack = [[root, 0]];
    while (stack.length > 0) {
      const [node, left] = stack.pop();
      if (!block(node, left, node.value / root.value, false)) continue;
      let right = left;
      for (const child of node.children) right += child.value / root.value;
      for (const child of [...node.children].reverse()) { // the leftmost is next
        stack.push([child, right -= child.value / root.value]);
      }
    }
    const focused = box.contains(document.activeElement) && document.activeElement.dataset.node;
    box.replaceChildren(...blocks, el("div", { style: `height:${(deepest + 1) * ROW_HEIGHT}px` }));
    box.style.height = "auto";
    box.classList.toggle("searching", terms !== "");
    if (focused) focus_node(root_index);

    // What matches counts once, however many of its frames do.
    let matched = 0;
    if (terms !== "") {
      const left = [nodes[0]];
      while (left.length > 0) {
        const node = left.pop();
        if (matches(node)) matched += node.value;
        else for (const child of node.children) if (child.value > 0) left.push(child);
      }
    }
    part("sum").textContent = sum_of(terms === "" ? null : matched);
    part("path").replaceChildren(...(root_index === 0 ? [] : [...ancestors(root), root]).flatMap((node, i) => [
      i > 0 ? " › " : "", el("button", { type: "button", text: short_name(node), onclick() { zoom(node.index); } })]));
    part("detail").textContent = root_index === 0 ? "" : describe(root);
  }

  function zoom(index) {
    root_index = index;
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
    show_tip(event, el("div", { class: "mono", text: node.text }),
      ...tip_of(node, nodes[root_index]).map((text) => el("div", { class: "muted", text })));
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
    const siblings = node.index === 0 ? [node] : drawn(nodes[node.parent].children);
    const at = siblings.indexOf(node);
    const next = { ArrowDown: () => drawn(node.children)[0], ArrowUp: () => nodes[node.parent], ArrowLeft: () => siblings[at - 1],
      ArrowRight: () => siblings[at + 1], Home: () => nodes[0] }[event.key];
    if (next) {
      event.preventDefault();
      const to = next();
      if (to) focus_node(to.index);
    }
    else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      zoom(node.index);
    }
    else if (event.key === "Escape") zoom(root_index === 0 ? 0 : nodes[root_index].parent);
  });
  part("search").addEventListener("input", (event) => { search = event.target.value; draw(); });

  return { draw, zoom };
}
