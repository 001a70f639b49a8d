// Other trees of the nodes of a flame graph (flame.js): the same stacks, summed in another order.
// Equal names become one node. `sums` names further numbers, or lists of numbers, of a node that are
// added up; other members are the first node's.
"use strict";

// Turns each node's own number, or list of numbers, into that of all stacks through it. Nodes are behind their parents.
function flame_add_up(nodes, name) {
  for (let i = nodes.length - 1; i > 0; i--) {
    const own = nodes[i][name], parent = nodes[nodes[i].parent];
    if (Array.isArray(own)) own.forEach((part, k) => { parent[name][k] += part; });
    else parent[name] += own;
  }
}

// Each node's value without its children's, and likewise its sums.
function flame_own(node, sums) {
  const own = { value: node.value };
  for (const child of node.children) own.value -= child.value;
  for (const name of sums) {
    const list = Array.isArray(node[name]) ? [...node[name]] : null;
    if (list) for (const child of node.children) child[name].forEach((part, i) => { list[i] -= part; });
    own[name] = list || node[name];
  }
  return own;
}

function flame_add(to, from, sums) {
  to.value += from.value;
  for (const name of sums) {
    const added = from[name];
    if (Array.isArray(added)) to[name] = (to[name] || added.map(() => 0)).map((part, i) => part + added[i]);
    else to[name] = (to[name] || 0) + added;
  }
}

// Whether a node, or what is its own, adds nothing: not even to the run that is not drawn.
function flame_nothing(amounts, sums) {
  const any = (amount) => Array.isArray(amount) && amount.some((part) => part > 0);
  return amounts.value <= 0 && !sums.some((name) => any(amounts[name]));
}

// A tree that grows: `rise` is -1 for nodes above the first one, 1 below.
function flame_grower(like, sums) {
  const first = { ...like, parent: 0, index: 0, depth: 0, value: 0, children: [], above: [] };
  for (const name of sums) delete first[name];
  const tree = [first], known = [new Map()];
  return {
    tree,
    add(at, node, amounts, rise) {
      const key = `${rise} ${node.text}`;
      let index = known[at].get(key);
      if (index === undefined) {
        index = tree.length;
        known[at].set(key, index);
        known.push(new Map());
        const grown = { ...node, parent: at, index, depth: tree[at].depth + rise, value: 0, children: [], above: [] };
        for (const name of sums) delete grown[name];
        tree.push(grown);
        tree[at][rise < 0 ? "above" : "children"].push(grown);
      }
      flame_add(tree[index], amounts, sums);
      return index;
    },
    done() {
      for (const node of tree) for (const list of [node.children, node.above]) list.sort((a, b) => b.value - a.value);
      return tree;
    },
  };
}

// Innermost frames first; below each frame its callers.
function flame_inverted(nodes, sums) {
  const grower = flame_grower(nodes[0], sums);
  for (const node of nodes.slice(1)) {
    const own = flame_own(node, sums);
    if (flame_nothing(own, sums)) continue;
    flame_add(grower.tree[0], own, sums);
    for (let at = 0, from = node; from.index !== 0; from = nodes[from.parent]) at = grower.add(at, from, own, 1);
  }
  return grower.done();
}

// All frames of one name as one: its callers above it, what it called below.
function flame_sandwich(nodes, text, sums) {
  const first = nodes.find((node) => node.text === text) || nodes[0];
  const grower = flame_grower(first, sums);
  const inside = (node) => { // of another frame of this name, which counts already
    for (let from = nodes[node.parent]; from.index !== 0; from = nodes[from.parent]) {
      if (from.text === text) return true;
    }
    return false;
  };
  for (const node of nodes) {
    if (node.index === 0 || node.text !== text || flame_nothing(node, sums) || inside(node)) continue;
    flame_add(grower.tree[0], node, sums);
    for (let at = 0, from = nodes[node.parent]; from.index !== 0; from = nodes[from.parent]) {
      at = grower.add(at, from, node, -1);
    }
    const left = node.children.map((child) => [child, 0]);
    while (left.length > 0) {
      const [callee, under] = left.pop();
      if (flame_nothing(callee, sums)) continue;
      const at = grower.add(under, callee, callee, 1);
      for (const child of callee.children) left.push([child, at]);
    }
  }
  return grower.done();
}

// The name in which most was spent itself.
function flame_heaviest(nodes, sums) {
  const own = new Map();
  for (const node of nodes.slice(1)) own.set(node.text, (own.get(node.text) || 0) + flame_own(node, sums).value);
  return [...own].reduce((most, one) => (one[1] > most[1] ? one : most), ["", -1])[0];
}

// The nodes of two runs as one tree: { parent, row, was } with the row of each run that has the node,
// or null. Rows begin with their parent and their text; the first one is the root.
function flame_union(rows, rows_before) {
  const nodes = rows.map((row) => ({ parent: row[0], row, was: null }));
  const known = rows.map(() => new Map()), place = [0];
  rows.forEach(([parent, text], i) => { if (i > 0) known[parent].set(text, i); });
  (rows_before || []).forEach((row, i) => {
    if (i === 0) { nodes[0].was = row; return; }
    const parent = place[row[0]];
    let at = known[parent].get(row[1]);
    if (at === undefined) {
      at = nodes.length;
      nodes.push({ parent, row: null, was: null });
      known.push(new Map());
      known[parent].set(row[1], at);
    }
    nodes[at].was = row;
    place[i] = at;
  });
  return nodes;
}

// How a node changed, as a class: from shrank3 (it is gone) to grew3 (it is new).
function flame_change(now, was) {
  const change = (now - was) / Math.max(now, was, 1), size = Math.abs(change);
  if (size < 0.05) return "same";
  return `${change > 0 ? "grew" : "shrank"}${size < 0.25 ? 1 : size < 0.6 ? 2 : 3}`;
}
