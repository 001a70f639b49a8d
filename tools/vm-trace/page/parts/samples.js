// A flame graph of samples of time, by what the threads did, from the parts of #data that only a trace with the stream
// `samples` has:
//
//   sample_states    what a thread did: compiled, interpreted …
//   sampled_cpu      CPU time, else wall-clock time of all threads
//   sampled_each_ns  one sample for so much
//   sampled          [parent, text, ns of each state …, number], each behind its parent; 0 is all. Its own ns of the
//                    first state have that number, those of the others the next ones: see bins.js
//   sampled_left_out how many small nodes are not there
"use strict";
function samples_view({
  data, S, bins, search, page_window, $, el, show_tip, hide_tip, percent, plural, time, label_parts,
}) {
  const any = data.sampled !== undefined;
  $("samples-section").hidden = !any;
  if (!any) return { any };
  const STATES = data.sample_states;
  const nothing = STATES.map(() => 0), ns_of = (row) => (row ? row.slice(2, 2 + STATES.length) : nothing);
  const nodes = flame_nodes(flame_union(data.sampled, data.before_sampled).map(({ parent, row, was }, index) => ({
    parent, text: index === 0 ? "all samples" : S[(row || was)[1]], whole: ns_of(row), whole_was: ns_of(was),
    number: row && row[2 + STATES.length], number_was: was && was[2 + STATES.length], ns: ns_of(row), was: ns_of(was),
    total: ns_of(row).reduce((sum, one) => sum + one, 0),
  })));
  const side = { before: false, redraw: () => draw() };
  const root = nodes[0];
  const waits = (state) => STATES[state] === "blocked" || STATES[state] === "waiting";
  const present = STATES.map((_, state) => state).filter((state) => root.ns[state] > 0);
  const runs = present.filter((state) => !waits(state));
  const chosen = new Set(runs.length > 0 ? runs : present); // where threads wait is another question

  const drawn = (node) => (side.before ? node.was : node.ns);
  const amount_of = (node, before) => [...chosen].reduce((sum, state) => sum + (before ? node.was : node.ns)[state], 0);
  const shown = (node) => [...chosen].map((state) => [state, drawn(node)[state]]).filter(([, ns]) => ns > 0)
    .sort((a, b) => b[1] - a[1]);
  const states_of = (node) =>
    shown(node).map(([state, ns]) => `${STATES[state]} ${percent(ns, node.value)}`).join(", ");
  const own_of = (node) => node.children.reduce((left, child) => left - child.value, node.value);

  const own_in_window = (number) => STATES.map((_, state) => (number ? bins.sum(number + state) : 0));
  function weigh() {
    if (!bins.range()) {
      for (const node of nodes) { node.ns = [...node.whole]; node.was = [...node.whole_was]; }
      return;
    }
    for (const node of nodes) { node.ns = own_in_window(node.number); node.was = own_in_window(node.number_was); }
    flame_add_up(nodes, "ns");
    flame_add_up(nodes, "was");
  }

  // A frame has the color of what its threads did most.
  const flame = flame_view({
    id: "samples", nodes, sums: ["ns", "was"], side, amount_of: data.before_sampled && amount_of, search,
    $, el, show_tip, hide_tip,
    empty: "No samples in these states and this window.",
    class_of: (node) => `why sampled${(shown(node)[0] || [0])[0]}`,
    name_of: (node) => label_parts(node.text).name,
    describe: (node) => `${node.text}  ${time(node.value)}, ${percent(node.value, root.value)}: ${states_of(node)}; ` +
      `own ${time(own_of(node))}`,
    tip_of: (node, from) => [
      `${time(node.value)}, ${percent(node.value, root.value)} of all` +
        (from.index !== 0 && node.depth > from.depth ? `, ${percent(node.value, from.value)} of what is shown` : ""),
      `own ${time(own_of(node))}`,
      ...shown(node).map(([state, ns]) => `${STATES[state]} ${time(ns)}, ${percent(ns, node.value)}`),
    ],
    sum_of: (matched) => (matched !== null ? `${percent(matched, root.value)} of the time is in matching frames`
      : `${time(root.value)} of ${data.sampled_cpu ? "CPU time" : "the time of all threads"}, ` +
        `a sample each ${time(data.sampled_each_ns)}` +
        (data.sampled_left_out > 0 ? `; ${plural(data.sampled_left_out, "small node")} left out` : "") +
        (bins.range() ? `; from ${bins.text()}` : "")),
  });

  function draw() {
    for (const node of nodes) node.value = amount_of(node, side.before);
    for (const node of nodes) node.children.sort((a, b) => b.value - a.value);
    draw_states();
    flame.draw();
  }

  function draw_states() {
    refill($("samples-states"), ...present.map((state) => el("button", {
      type: "button", "aria-pressed": String(chosen.has(state)), "data-state": String(state),
      onclick() {
        if (!chosen.delete(state)) chosen.add(state);
        draw();
      },
    }, el("span", { class: `swatch sampled${state}`, "aria-hidden": "true" }),
    ` ${STATES[state]} `, el("span", { class: "muted", text: time(root.ns[state]) }))));
  }

  addEventListener("resize", () => flame.draw());
  page_window.follow("samples", () => { weigh(); draw(); });
  search.follow(() => flame.draw());
  draw();
  return { any };
}
