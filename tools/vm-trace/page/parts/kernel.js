// System calls and times on CPUs, from the parts of #data that only a trace with the streams `syscalls` or `sched` has.
// "numbers" are those of slices in bins.js; what is before them is of the whole trace.
//
//   syscalls         [name, ns, calls, longest ns, errors, most frequent errno, not returned, numbers,
//                    [[errno, numbers] …]], longest first; syscalls_left_out, syscall_ns (of all),
//                    syscalls_too_short (not recorded)
//   syscall_methods  [method, ns, calls, its system calls, [[name, numbers] …]], longest first; its system
//                    calls are a text, not its number, and method is "" outside of recorded calls;
//                    syscall_methods_left_out
//   cpus             [process, tid, thread, ns on a CPU, ns preempted, ns woken, longest wait, runs, migrations, ns with
//                    the GVL and without a CPU (null: not recorded), numbers of runs, of migrations, of times
//                    preempted, woken, number of the ns without a CPU], those that waited longest first; thread is a
//                    text, not its number; cpus_left_out, slices_too_short (not recorded)
//   cpu_others       [task, tid, thread, waits, ns, numbers], longest first; thread is a text; cpu_others_left_out
"use strict";
function kernel_view({ data, S, bins, search, page_window, $, number, percent, time, lists }) {
  const { draw_list } = lists;
  const NAMES_SHOWN = 3; // system calls of a method
  const short = (count, what) =>
    (count > 0 && !bins.range() ? `; ${number(count)} shorter ${what} are not recorded` : "");
  const by_name = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
  const longest_first = (rows) => rows.sort((a, b) => b.ns - a.ns || b.calls - a.calls || by_name(a, b));

  function syscalls() {
    if (!bins.range()) {
      return data.syscalls.map(([name, ns, calls, max, errors, errno]) => (
        { name: S[name], ns, calls, max, errors, errno: S[errno] }));
    }
    return longest_first(data.syscalls.map(([name, , , , , , , numbers, errnos]) => {
      const { ns, count: calls, longest: max } = bins.slices(numbers);
      const failed = errnos.map(([errno, of_errno]) => ({ name: S[errno], calls: bins.slices(of_errno).count }));
      const errors = failed.reduce((sum, one) => sum + one.calls, 0);
      const most = failed.reduce((a, b) => (b.calls > a.calls ? b : a), { name: "", calls: 0 });
      return { name: S[name], ns, calls, max, errors, errno: most.name };
    }).filter(({ calls }) => calls > 0));
  }

  function draw_syscalls() {
    const rows = syscalls(), all_ns = bins.range() ? rows.reduce((sum, { ns }) => sum + ns, 0) : data.syscall_ns;
    return draw_list({
      id: "syscalls", title: `System calls: ${time(all_ns)}${short(data.syscalls_too_short, "ones")}`,
      titles: ["system call", "most often", "total", "share", "calls", "max", "errors"], texts: 2,
      rows, left_out: data.syscalls_left_out,
      cells: ({ name, ns, calls, max, errors, errno }) =>
        [name, errno, { ns }, percent(ns, all_ns), number(calls), { ns: max }, number(errors)],
    });
  }

  // As the report writes them.
  function names_text(names) {
    const most = names.sort((a, b) => b.calls - a.calls || by_name(a, b));
    const shown = most.slice(0, NAMES_SHOWN).map(({ name, calls }) => `${name} ${number(calls)}`).join(", ");
    return most.length > NAMES_SHOWN ? `${shown}, ${most.length - NAMES_SHOWN} more` : shown;
  }

  function methods() {
    if (!bins.range())
      return data.syscall_methods.map(([method, ns, calls, names]) => ({ name: S[method], ns, calls, names }));
    return longest_first(data.syscall_methods.map(([method, , , , parts]) => {
      const names = parts.map(([name, numbers]) => {
        const { ns, count: calls } = bins.slices(numbers);
        return { name: S[name], ns, calls };
      }).filter(({ calls }) => calls > 0);
      const sum = (member) => names.reduce((all, one) => all + one[member], 0);
      return { name: S[method], ns: sum("ns"), calls: sum("calls"), names: names_text(names) };
    }).filter(({ calls }) => calls > 0));
  }

  const draw_methods = () => draw_list({
    id: "syscall-methods", title: "Methods that made system calls",
    titles: ["method", "system calls", "total", "calls"], texts: 2,
    rows: methods(), left_out: data.syscall_methods_left_out,
    cells: ({ name, ns, calls, names }) => [name || "(outside recorded calls)", names, { ns }, number(calls)],
  });

  const with_gvl = () => data.cpus.some((row) => row[9] !== null);

  function cpus() {
    const rows = data.cpus.map(([process, tid, thread, on, preempted, woken, longest, runs, migrations, held, ...of_window]) => {
      const { place } = data.processes[process], name = place ? `${thread} (${place})` : thread;
      if (!bins.range()) return { tid, name, on, preempted, woken, longest, runs, migrations, held };
      const [ran, moved, before, after] = of_window.slice(0, 4).map(bins.slices);
      return {
        tid, name, on: ran.ns, preempted: before.ns, woken: after.ns, longest: Math.max(before.longest, after.longest),
        runs: ran.count, migrations: moved.count, held: held === null ? null : bins.sum(of_window[4]),
        slices: ran.count + before.count + after.count,
      };
    });
    if (!bins.range()) return rows;
    const waited = ({ preempted, woken }) => preempted + woken;
    return rows.filter(({ slices }) => slices > 0).sort((a, b) => waited(b) - waited(a) || b.on - a.on);
  }

  const draw_cpus = () => draw_list({
    id: "cpus", title: `Threads and CPUs${short(data.slices_too_short, "times")}`,
    titles: ["thread", "tid", "on a CPU", "preempted", "woken", "longest wait", "runs", "migrations",
      ...(with_gvl() ? ["held the GVL without a CPU"] : [])], texts: 2,
    rows: cpus(), left_out: data.cpus_left_out,
    cells: ({ tid, name, on, preempted, woken, longest, runs, migrations, held }) =>
      [name, String(tid), ...[on, preempted, woken, longest].map((ns) => ({ ns })), number(runs), number(migrations),
        ...(with_gvl() ? [held === null ? "" : { ns: held }] : [])],
  });

  function others() {
    const rows = data.cpu_others.map(([task, tid, thread, waits, ns, numbers]) => {
      const slices = bins.range() ? bins.slices(numbers) : { count: waits, ns };
      return { name: S[task], tid, thread, calls: slices.count, ns: slices.ns };
    });
    return bins.range() ? longest_first(rows.filter(({ calls }) => calls > 0)) : rows;
  }

  const draw_others = () => draw_list({
    id: "cpu-others", title: "Tasks that had the CPU while threads waited for it",
    titles: ["task", "thread that waited", "tid", "waits", "time"], texts: 3,
    rows: others(), left_out: data.cpu_others_left_out,
    cells: ({ name, tid, thread, calls, ns }) => [name, thread, String(tid), number(calls), { ns }],
  });

  const tables = [[data.syscalls, draw_syscalls], [data.syscall_methods, draw_methods], [data.cpus, draw_cpus],
    [data.cpu_others, draw_others]].filter(([rows]) => rows !== undefined && rows.length > 0);

  function draw() {
    $("kernel-window").textContent = bins.range()
      ? `From ${bins.text()}. Slices that cross its borders count with their part inside; the longest are whole.` : "";
    $("kernel-tables").replaceChildren(...tables.map(([, draw_table]) => draw_table()));
  }

  $("kernel").hidden = tables.length === 0;
  if (tables.length === 0) return;
  page_window.follow("kernel", draw);
  search.follow(draw);
  draw();
}
