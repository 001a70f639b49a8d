// The window of time that the page shows. Every view reads and sets this one.
"use strict";
function shared_window(span_ns) {
  const FEWEST_NS = 100; // no window is narrower
  const SETTLED_MS = 150;
  const whole = [0, Math.max(span_ns, 1)];
  const views = []; // { name, draw, at_once }
  let now = whole, back_to = [], timer = null;

  const is_whole = () => now[0] === whole[0] && now[1] === whole[1];

  function draw(from, at_once) {
    const window = is_whole() ? null : now;
    const wanted = (view) => view.name !== from && (at_once === undefined || view.at_once === at_once);
    for (const view of views.filter(wanted)) view.draw(window);
  }

  // `from`: the name of a view that shows the window already. `moving`: more changes are coming, so
  // slow views wait for the last one.
  function set(from_ns, to_ns, { from, moving } = {}) {
    from_ns = Math.max(whole[0], from_ns);
    to_ns = Math.min(whole[1], to_ns);
    if (to_ns - from_ns < FEWEST_NS) {
      from_ns = Math.max(whole[0], Math.min(whole[1] - FEWEST_NS, (from_ns + to_ns - FEWEST_NS) / 2));
      to_ns = Math.min(whole[1], from_ns + FEWEST_NS);
    }
    now = [from_ns, to_ns];
    if (is_whole()) back_to = [];
    clearTimeout(timer);
    if (!moving) { draw(from); return; }
    draw(from, true);
    timer = setTimeout(() => draw(from, false), SETTLED_MS);
  }

  function zoom(from_ns, to_ns) {
    back_to.push(now);
    set(from_ns, to_ns);
  }

  return {
    whole, is_whole, set, zoom,
    get: () => now,
    back: () => set(...(back_to.pop() || whole)),
    can_go_back: () => back_to.length > 0,
    // `draw` gets the window, or null for the whole trace. `at_once`: it is fast enough to follow a
    // movement.
    follow(name, draw_view, at_once = false) { views.push({ name, draw: draw_view, at_once }); },
  };
}
