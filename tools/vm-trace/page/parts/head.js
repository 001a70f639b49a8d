// The key figures and what stands out, at the top of the page; settings and losses, at its end. All are
// of the whole trace.
"use strict";
function head_view({
  data, S, rows, has_exits, cost, calls, samples, threads, $, el, number, percent, plural, time,
}) {
  function draw_head() {
    const command = data.settings.find(([key]) => S[key] === "command");
    const partial = data.partial.length > 0;
    document.title = `${partial ? "Part of " : ""}${data.files.join(", ")} – vm-trace`;
    $("partial").hidden = !partial;
    $("partial").replaceChildren(...data.partial.map((text) => el("span", { text: `Partial: ${text}` })));
    $("subtitle").textContent = (command && S[command[1]]) || data.files.join(", ");
    const kinds = [[calls.any, "Calls"], [samples.any, "Samples"], [threads.has_threads, "Threads"],
      [threads.has_fibers, "Fibers"]];
    if (!has_exits) $("title").textContent = (kinds.find(([any]) => any) || [true, "Garbage collection"])[1];
    for (const id of ["timeline-section", "table-section", "flame-section"]) $(id).hidden = !has_exits;
    const tiles = has_exits ? [["Exits", number(data.exits)]] : [];
    if (data.fallbacks > 0) tiles.push(["Fallbacks", number(data.fallbacks)]);
    tiles.push(["Time span", time(data.span_ns)]);
    if (has_exits && data.span_ns > 0) tiles.push(["Exits a second", number(data.exits / data.span_ns * 1e9)]);
    if (has_exits) tiles.push(["Places", number(rows.reduce((sum, row) => sum + row.places, 0))]);
    if (data.recorded !== data.exits + data.fallbacks)
      tiles.push(["Recorded: counts are scaled", number(data.recorded)]);
    if (data.summarized && data.lost === 0 && data.exact_exits !== data.exits)
      tiles.push(["Exits, counted exactly", number(data.exact_exits)]);
    if (threads.has_threads)
      tiles.push(["Threads", number(threads.threads)], ["Waited for the GVL", time(threads.waiting_ns)]);
    if (calls.any) tiles.push(["Calls", number(data.calls.recorded)]);
    if (calls.any && data.calls.unrecorded > 0) tiles.push(["Calls not recorded", number(data.calls.unrecorded)]);
    if (threads.has_gc) tiles.push(["Paused by GC", time(threads.pause_ns)]);
    const { compiles, compile_ns } = data.compiling;
    if (compiles > 0) tiles.push([plural(compiles, "compilation"), time(compile_ns)]);
    const none = data.summarized ? "none" : "none known";
    if (data.ours) tiles.push(["Lost events", data.lost > 0 ? number(data.lost) : none, data.lost > 0]);
    $("tiles").replaceChildren(...tiles.map(([name, value, bad]) => el("div", {},
      el("dt", { text: name }), el("dd", { text: value, class: bad ? "bad" : undefined }))));
    draw_findings();
  }

  function draw_findings() {
    const exits = rows.filter((row) => !row.fallback);
    const found = [];
    if (has_exits && !cost.timed && data.ours) {
      const option = el("code", { text: "--vm-trace=states" });
      found.push(["Counts are not cost; ", option, " records the time that exits lose."]);
    }
    const mono = (text) => el("span", { class: "mono", text });
    const top = exits.find((row) => row.places === 1);
    if (top && top.count / data.exits >= 0.1) {
      const share = percent(top.count, data.exits);
      found.push([`${share} of all exits are `, mono(top.reason), " in ", mono(top.frame), "."]);
    }
    const forever = exits.filter((row) => row.outcome === "version_limit");
    const forever_count = forever.reduce((sum, row) => sum + row.count, 0);
    if (forever_count > 0) {
      const share = percent(forever_count, data.exits);
      found.push([`${share} are recompile exits of methods that have all the versions they may have: ` +
        "they keep exiting there. Most: ", mono(forever[0].frame), "."]);
    }
    // How the trace ends is known only if it was read up to there.
    const ends = !data.stopped && !data.cut;
    const quiet = ends && data.bins.count > 20 ? exits.reduce((late, row) => Math.max(late, row.last), 0) / data.span_ns : 1;
    if (quiet < 0.5) found.push([`No exits after ${time(quiet * data.span_ns)}: the code has settled.`]);
    if (data.cut) found.push(["This is a part cut out of a trace: without exact counts and a summary."]);
    if (ends && data.ours && !data.summarized)
      found.push(["The trace has no summary: its program still runs, or ended abruptly."]);
    if (has_exits && rows.length === 0) found.push(["There are no side exits in this trace."]);
    $("findings").replaceChildren(...found.map((parts) => el("li", {}, ...parts)));
  }

  function draw_about() {
    const list = (title, pairs) => el("div", {}, el("h3", { text: title }),
      el("dl", {}, ...pairs.flatMap(([name, value]) => [el("dt", { text: name }), el("dd", { text: value })])));
    const settings = data.settings.map(([name, value]) => [S[name], S[value]]);
    const about = [list("Settings", [["file", data.files.join(", ")], ...settings])];
    const facts = [
      ["events", number(data.events)],
      ["first event", `${(data.first_ns / 1e9).toFixed(6)} s after the system started`],
      ["time span", time(data.span_ns)],
    ];
    for (const [reason, events] of data.losses)
      facts.push(["lost", `${plural(events, "event")}: ${S[reason] || "no reason recorded"}`]);
    if (data.losses.length === 0) facts.push(["lost", data.lost > 0 ? plural(data.lost, "event") : "nothing known"]);
    about.push(list("Facts", facts));
    const threads = data.threads.slice().sort((a, b) => b[3] - a[3]);
    const listed = threads.slice(0, 20).map(([process, tid, name, events]) => {
      const { text } = data.processes[process];
      return [tid ? `${text} / ${tid}` : text, `${S[name] || "(no name)"}: ${plural(events, "event")}`];
    });
    if (data.thread_count > 20) listed.push(["", `and ${number(data.thread_count - 20)} more`]);
    about.push(list("Threads", listed));
    $("about").replaceChildren(...about);
  }

  draw_head();
  draw_about();
}
