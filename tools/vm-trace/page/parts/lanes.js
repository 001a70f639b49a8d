// The lanes of calls: a canvas with a lane for each thread and fiber, and a row for each depth.
//
// The canvas is as large as what one sees of it: it stays in place while an element of the height of
// all lanes scrolls below it.
"use strict";

// `state` is the caller's: selected (a slice, or -1) and found (null, or methods: 1 for each that
// matches the search). The caller gets `select` for a clicked slice, `open` for a double-clicked one.
function lanes_view({
  calls, state, $, plural, time, round_step, label_parts, page_window, show_tip_of, hide_tip, select, open,
}) {
  const { methods, tracks, begins, ends, method_of, depth_of } = calls;
  const LABEL = 168, AXIS = 22, ROW = 18, GAP = 10, LEAST = 36, HUES = 12;
  const { whole } = page_window, box = $("lanes"), canvas = $("lanes-canvas"), context = canvas.getContext("2d");
  let lanes = [], width = 0, height = 0, pending = false, character = 7, visited = 0, colors = null;

  // --- places and times --------------------------------------------------------------------------

  const window_ns = () => { const [from, to] = page_window.get(); return to - from; };
  const x_of = (ns) => (ns - page_window.get()[0]) / window_ns() * width;
  const ns_at = (x) => page_window.get()[0] + x / width * window_ns();
  const track_of = (slice) => tracks.find(({ first, end }) => slice >= first && slice < end);
  const lane_at = (y) => {
    const in_space = y + box.scrollTop;
    return lanes.find((lane) => in_space >= lane.y && in_space < lane.y + lane.height);
  };

  const UNITS = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];
  const unit_for = (ns) => UNITS[ns < 1e3 ? 0 : ns < 1e6 ? 1 : ns < 1e9 ? 2 : 3];
  // A time with as many digits as tell steps apart.
  function time_by(ns, step, [unit, name]) {
    const digits = Math.ceil(Math.log10(unit / step) - 1e-9);
    return `${(ns / unit).toFixed(Math.max(0, Math.min(9, digits)))} ${name}`;
  }
  const axis_time = (ns, step) => (ns === 0 ? "0" : time_by(ns, step, unit_for(page_window.get()[1])));
  const moment = (ns) => time_by(ns, Math.max(1, window_ns() / 1000), unit_for(ns));

  function place() {
    let y = AXIS + 4;
    lanes = tracks.map((track) => {
      const rows = track.folded ? track.rows.slice(0, 1) : track.rows;
      const lane = { track, label: track.label, rows, y, height: Math.max(LEAST, rows.length * ROW) };
      y += lane.height + GAP;
      return lane;
    });
    $("lanes-space").style.height = `${y}px`;
    height = Math.min(y, Math.max(160, Math.floor(innerHeight * 0.7)));
    box.style.height = `${height}px`;
    width = Math.max(160, box.clientWidth - LABEL);
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round((LABEL + width) * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${LABEL + width}px`;
    canvas.style.height = `${height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    redraw();
  }

  // The slice at a place of the canvas, or -1; of several in one pixel the first.
  function slice_at({ x, y }) {
    if (x < 0 || x >= width || y < AXIS) return -1;
    const lane = lane_at(y), row = lane && lane.rows[Math.floor((y + box.scrollTop - lane.y) / ROW)];
    if (!row) return -1;
    const pixel = Math.floor(x), at = calls.first_after(row, ns_at(pixel));
    return at < row.length && begins[row[at]] < ns_at(pixel + 1) ? row[at] : -1;
  }

  // --- colors --------------------------------------------------------------------------------------

  function read_colors() {
    const style = getComputedStyle(document.documentElement), color = (name) => style.getPropertyValue(name).trim();
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const shade = (i) => (dark ? `34% ${i % 2 ? 27 : 31}%` : `52% ${i % 2 ? 78 : 84}%`);
    colors = {
      card: color("--card"), line: color("--line"), text: color("--text"), muted: color("--muted"),
      mark: color("--mark"), mono: color("--mono"), c_method: color("--c-frame"),
      slice_text: dark ? "#eef1f7" : "#1d2330",
      fills: Array.from({ length: HUES }, (_, i) => `hsl(${i * 360 / HUES} ${shade(i)})`),
    };
  }

  // Methods of one name have one color; methods in C are gray.
  const short_names = methods.map(({ name }) => label_parts(name).name);
  const color_numbers = methods.map(({ name }) => {
    if (label_parts(name).place === "") return -1;
    let hash = 0;
    for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) >>> 0;
    return ((hash ^ hash >>> 15) >>> 0) % HUES;
  });
  const fill_of = (method) => (color_numbers[method] < 0 ? colors.c_method : colors.fills[color_numbers[method]]);

  // --- drawing -------------------------------------------------------------------------------------

  function shortened(text, room) {
    const fits = Math.floor(room / character);
    return text.length <= fits ? text : fits < 2 ? "" : `${text.slice(0, fits - 1)}…`;
  }

  function fill(color, x, y, wide) {
    context.fillStyle = color;
    context.fillRect(LABEL + x, y, wide, ROW - 1);
  }

  // Slices of one depth. Those narrower than a pixel become columns of one pixel, and the search for the
  // next one skips the others of the column: so the work depends on the width, not on the slices.
  function draw_row(row, y, color_of) {
    const [from, to] = page_window.get(), scale = width / (to - from);
    let run_x = -1, run_end = 0, run_color = null; // columns of one color
    const flush = () => {
      if (run_x >= 0 && run_end > run_x) fill(run_color, run_x, y, run_end - run_x);
      run_x = -1;
    };
    for (let i = calls.first_after(row, from); i < row.length && begins[row[i]] < to;) {
      visited++;
      const slice = row[i], x1 = (begins[slice] - from) * scale, x2 = (ends[slice] - from) * scale;
      const color = color_of(method_of[slice]);
      if (x2 - x1 >= 1) {
        flush();
        const left = Math.max(0, x1), wide = Math.min(width, x2) - left;
        fill(color, left, y, Math.max(1, wide - (wide > 3 ? 1 : 0)));
        if (wide > 26) {
          context.fillStyle = colors.slice_text;
          context.fillText(shortened(short_names[method_of[slice]], wide - 8), LABEL + left + 4, y + 12.5);
        }
        i++;
        continue;
      }
      const column = Math.max(0, Math.floor(x1)), next_ns = from + (column + 1) / scale;
      if (run_x < 0 || run_color !== color || column > run_end) {
        flush();
        run_color = color;
        run_x = Math.max(column, run_end);
      }
      run_end = Math.max(run_end, column + 1);
      i = calls.first_after(row, next_ns, i + 1);
    }
    flush();
  }

  const matches_of = (track, depth) => {
    const { rows, methods: wanted } = state.found, key = `${track.first} ${depth}`;
    if (!rows.has(key)) rows.set(key, track.rows[depth].filter((slice) => wanted[method_of[slice]]));
    return rows.get(key);
  };

  function draw_lane(lane, y) {
    const first = Math.max(0, Math.floor((AXIS - y) / ROW));
    const last = Math.min(lane.rows.length - 1, Math.floor((height - y) / ROW));
    for (let depth = first; depth <= last; depth++) {
      draw_row(lane.rows[depth], y + depth * ROW, state.found ? () => colors.c_method : fill_of);
      if (state.found) draw_row(matches_of(lane.track, depth), y + depth * ROW, () => colors.mark);
    }
    context.fillStyle = colors.line;
    context.fillRect(0, y + lane.height + GAP / 2, LABEL + width, 1);
  }

  // The label of a lane whose begin is out of sight is at the top.
  function draw_label(lane, lane_y) {
    const y = Math.max(Math.min(AXIS + 2, lane_y + lane.height - LEAST), lane_y);
    context.fillStyle = colors.muted;
    context.fillText(lane.track.folded ? "▸" : "▾", 2, y + 13);
    context.fillStyle = colors.text;
    context.fillText(shortened(lane.label, LABEL - 26), 16, y + 13);
    context.fillStyle = colors.muted;
    context.font = "11px system-ui, sans-serif";
    context.fillText(plural(lane.track.end - lane.track.first, "call"), 16, y + 28);
    context.font = `11.5px ${colors.mono}`;
  }

  function draw_selected() {
    const slice = state.selected, depth = depth_of[slice], lane = lanes.find(({ track }) => track === track_of(slice));
    const x1 = Math.max(-2, x_of(begins[slice])), x2 = Math.min(width + 2, x_of(ends[slice]));
    if (depth >= lane.rows.length || x2 < 0 || x1 > width) return;
    context.strokeStyle = colors.text;
    context.lineWidth = 2;
    context.strokeRect(LABEL + x1, lane.y - box.scrollTop + depth * ROW, Math.max(3, x2 - x1 - 1), ROW - 1);
  }

  function draw_axis() {
    const [from, to] = page_window.get(), tick = round_step((to - from) / Math.max(2, width / 120));
    context.fillStyle = colors.muted;
    context.font = "11px system-ui, sans-serif";
    for (let ns = Math.ceil(from / tick) * tick; ns <= to; ns += tick) {
      const x = x_of(ns);
      context.textAlign = x < 30 ? "left" : x > width - 30 ? "right" : "center";
      context.fillText(axis_time(ns, tick), LABEL + x, 15);
      context.fillRect(LABEL + Math.min(width - 1, Math.round(x)), 0, 1, 4);
    }
    context.textAlign = "left";
  }

  function draw() {
    pending = false;
    visited = 0;
    context.clearRect(0, 0, LABEL + width, height);
    context.font = `11.5px ${colors.mono}`;
    character = context.measureText("MMMMMMMMMM").width / 10;
    context.save();
    context.beginPath();
    context.rect(0, AXIS, LABEL + width, height - AXIS);
    context.clip();
    for (const lane of lanes) {
      const y = lane.y - box.scrollTop;
      if (y > height || y + lane.height < AXIS) continue;
      draw_label(lane, y);
      draw_lane(lane, y);
    }
    if (state.selected >= 0) draw_selected();
    context.restore();
    draw_axis();
    box.dataset.slices = visited;
  }

  function redraw() {
    if (!pending) requestAnimationFrame(draw);
    pending = true;
  }

  // --- moving --------------------------------------------------------------------------------------

  function pan(ns, moving) {
    const [from, to] = page_window.get(), shift = Math.max(whole[0] - from, Math.min(whole[1] - to, ns));
    page_window.set(from + shift, to + shift, { moving });
  }

  // Zooms so that the time at a share of the width stays there.
  function zoom_at(share, factor, moving) {
    const [from, to] = page_window.get(), at = from + share * (to - from);
    const length = Math.min(whole[1], Math.max(100, (to - from) * factor));
    const begin = Math.max(whole[0], Math.min(whole[1] - length, at - share * length));
    page_window.set(begin, begin + length, { moving });
  }

  const zoom_to = (slice) => {
    const margin = (ends[slice] - begins[slice]) / 20;
    page_window.zoom(begins[slice] - margin, ends[slice] + margin);
  };

  // Moves the window to a slice, if it is outside or too narrow to see.
  function show(slice) {
    const track = track_of(slice);
    if (track.folded) { track.folded = false; place(); }
    const [from, to] = page_window.get(), length = ends[slice] - begins[slice], middle = begins[slice] + length / 2;
    if (length / (to - from) * width < 3) {
      const half = 50 * Math.max(1, length);
      page_window.zoom(middle - half, middle + half);
    } else if ((begins[slice] < from || ends[slice] > to) && length < to - from) {
      page_window.set(middle - (to - from) / 2, middle + (to - from) / 2);
    }
    const y = lanes.find((lane) => lane.track === track).y + depth_of[slice] * ROW;
    if (y < box.scrollTop + AXIS || y + ROW > box.scrollTop + height) box.scrollTop = Math.max(0, y - height / 2);
  }

  function fold_at(y) {
    const lane = lane_at(y);
    if (!lane) return;
    lane.track.folded = !lane.track.folded;
    place();
  }

  // --- the pointer -----------------------------------------------------------------------------------

  const place_of = (event) => {
    const frame = canvas.getBoundingClientRect();
    return { x: event.clientX - frame.left - LABEL, y: event.clientY - frame.top };
  };

  function mark_selection(from, to) {
    const left = Math.max(0, Math.min(from, to)), right = Math.min(width, Math.max(from, to));
    const mark = $("lanes-selection");
    mark.hidden = false;
    mark.style.cssText = `left:${LABEL + left}px;width:${right - left}px;top:${box.scrollTop}px;height:${height}px`;
  }

  function listen_to_pointer() {
    let pressed = null, panned = 0;
    const release = () => { pressed = null; $("lanes-selection").hidden = true; };
    box.addEventListener("pointerdown", (event) => {
      const at = place_of(event);
      if (event.target !== canvas || event.button > 1) return;
      if (at.x < 0) { fold_at(at.y); return; }
      pressed = { ...at, pans: event.button === 1 || event.shiftKey };
      panned = at.x;
      if (event.button === 1) event.preventDefault();
      box.setPointerCapture(event.pointerId);
    });
    box.addEventListener("pointermove", (event) => {
      const at = place_of(event);
      if (!pressed) { show_tip_of(event, slice_at(at)); return; }
      hide_tip();
      if (pressed.pans) {
        pan((panned - at.x) / width * window_ns(), true);
        panned = at.x;
      } else if (Math.abs(at.x - pressed.x) > 3) mark_selection(pressed.x, at.x);
    });
    box.addEventListener("pointerup", (event) => {
      const from = pressed, at = place_of(event);
      release();
      if (!from || from.pans) return;
      const left = Math.max(0, Math.min(from.x, at.x)), right = Math.min(width, Math.max(from.x, at.x));
      if (Math.abs(at.x - from.x) <= 3) select(slice_at(at)); else page_window.zoom(ns_at(left), ns_at(right));
    });
    box.addEventListener("pointercancel", release);
    box.addEventListener("pointerleave", hide_tip);
    box.addEventListener("dblclick", (event) => { if (place_of(event).x >= 0) open(slice_at(place_of(event))); });
  }

  // Without a click before, the wheel scrolls the page.
  function on_wheel(event) {
    const { x } = place_of(event), sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const pans = event.shiftKey || sideways;
    if (x < 0 || !(event.ctrlKey || pans || document.activeElement === box)) return;
    event.preventDefault();
    hide_tip();
    if (pans) pan((sideways ? event.deltaX : event.deltaY) / width * window_ns(), true);
    else zoom_at(x / width, Math.exp(Math.max(-100, Math.min(100, event.deltaY)) * 0.004), true);
  }

  function begin() {
    read_colors();
    place();
    draw();
    listen_to_pointer();
    box.addEventListener("wheel", on_wheel, { passive: false });
    box.addEventListener("scroll", () => { hide_tip(); redraw(); });
    addEventListener("resize", place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { read_colors(); redraw(); });
  }

  return { begin, redraw, show, pan, zoom_at, zoom_to, window_ns, axis_time, moment, track_of, short_names };
}
