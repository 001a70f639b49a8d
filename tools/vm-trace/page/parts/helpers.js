// What all scripts of the page use: elements, numbers and times as texts, the tip at the pointer, parts of labels.
"use strict";
function page_helpers() {
  const $ = (id) => document.getElementById(id);

  function fill(node, properties, children) {
    for (const [name, value] of Object.entries(properties || {})) {
      if (value === undefined || value === false) continue;
      if (name === "class") node.setAttribute("class", value);
      else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (name === "text") node.textContent = value;
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }
  const el = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
  // A method and its place. Lines break between its words, not within them.
  const breakable = (text) => text.split(/(?=[/(#]|::)/).flatMap((part, i) => (i > 0 ? [el("wbr"), part] : [part]));
  const svg = (tag, properties, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);

  const number = (n) => Math.round(n).toLocaleString("en-US");
  function percent(part, whole) {
    if (whole === 0) return "–";
    return (100 * part / whole).toFixed(part / whole < 0.0995 ? 2 : 1) + " %";
  }
  const plural = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;
  // Durations in a column have one unit and the decimals that the shortest needs for three digits, by the rule of the
  // report's tables (struct duration_scale). Takes the durations of a column; returns the function that writes one.
  const UNITS = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];
  function time_column(durations) {
    const sizes = durations.map(Math.abs).filter((size) => size > 0);
    const fits = (size, unit) => size >= 0.9995 * UNITS[unit][0];
    const most = sizes.reduce((a, b) => Math.max(a, b), 0), least = sizes.reduce((a, b) => Math.min(a, b), Infinity);
    let at = UNITS.findLastIndex((_, unit) => unit === 0 || fits(most, unit));
    if (at > 0 && 2 * sizes.filter((size) => !fits(size, at)).length > sizes.length) at--;
    const [unit, name] = UNITS[at], decimals = at === 0 || least / unit >= 99.95 ? 0 : least / unit >= 9.995 ? 1 : 2;
    const digits = (value, count) => value.toFixed(count).replace(/\B(?=(\d{3})+(\.|$))/g, ",");
    return (ns) => {
      const value = Math.abs(ns) / unit, smallest = 10 ** -decimals, sign = ns < 0 ? "-" : "";
      if (value > 0 && value < smallest / 2) return `<${digits(smallest, decimals)} ${name}`;
      return `${sign}${digits(value, value > 0 ? decimals : 0)} ${name}`;
    };
  }
  const time = (ns) => time_column([ns])(ns);
  // Rows of cells, where { ns } becomes its text.
  function with_times(rows) {
    const is_time = (cell) => typeof cell === "object" && cell.ns !== undefined;
    const of_column = (i) => rows.map((row) => row[i]).filter(is_time).map(({ ns }) => ns);
    const texts = (rows[0] || []).map((_, i) => time_column(of_column(i)));
    return rows.map((row) => row.map((cell, i) => (is_time(cell) ? texts[i](cell.ns) : cell)));
  }
  // The smallest of 1, 2, 5, 10, 20 … that is at least this.
  function round_step(step) {
    const power = 10 ** Math.floor(Math.log10(step));
    return power * [1, 2, 5, 10].find((factor) => power * factor >= step * 0.9999);
  }

  function show_tip(event, ...content) {
    const tip = $("tip");
    tip.replaceChildren(...content);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const x = event.clientX + 14 + box.width > innerWidth ? event.clientX - box.width - 14 : event.clientX + 14;
    const y = event.clientY + 14 + box.height > innerHeight ? event.clientY - box.height - 14 : event.clientY + 14;
    tip.style.left = `${Math.max(4, x)}px`;
    tip.style.top = `${Math.max(4, y)}px`;
  }
  const hide_tip = () => { $("tip").hidden = true; };

  // The parts of `Foo#bar (/app/foo.rb:3)`. A name may contain "(2 levels)" or "(required)", a path anything.
  function label_parts(label) {
    const match = /^(.+?) \((?!\d+ levels\) in |required\)>)(.*)\)$/s.exec(label);
    if (!match) return { name: label, place: "", file: "" };
    return { name: match[1], place: match[2], file: match[2].replace(/:-?\d+$/, "") };
  }

  // The end of a long path; the tip shows all of it.
  const short_path = (path) => (path.length <= 44 ? path : path.replace(/^(<?).*?([^/]*\/[^/]*\/?[^/]*)$/, "$1…/$2"));

  // Labels of threads: their names, and as far as others share these, their tids and their processes.
  function label_threads(tracks, processes) {
    const group = (key_of, member) => {
      const groups = new Map();
      for (const track of tracks) groups.set(key_of(track), (groups.get(key_of(track)) || new Set()).add(member(track)));
      return (track) => groups.get(key_of(track)).size;
    };
    const with_name = group(({ name }) => name, (track) => track);
    const with_tid = group(({ name, tid }) => `${tid} ${name}`, ({ process }) => process);
    for (const track of tracks) {
      const { pid, place } = processes[track.process];
      const where = with_tid(track) > 1 ? ` (${place || `pid ${pid}`})` : "";
      track.label = with_name(track) > 1 ? `${track.name} ${track.tid}${where}` : track.name;
    }
  }

  // Text with code between backticks.
  const with_code = (text) => text.split("`").map((part, i) => (i % 2 === 0 ? part : el("code", { text: part })));

  return {
    $, el, breakable, svg, number, percent, plural, time, time_column, with_times, round_step, show_tip, hide_tip,
    label_parts, short_path, label_threads, with_code,
  };
}
