// The head of the page: where the time went, and what to change first, as the first screen of `vm-trace report` has it.
// The part of #data:
//
//   first        whole_ns: the time that shares are of; threads: how many; of_main: main threads only
//                where: [state, ns], largest first
//                requests: count of requests and jobs; whole_ns and where of them; missing if there are none
//                findings: subject, what, place, cause, helps; least_ns, most_ns and gain_ns of whole_ns (gain_ns is
//                missing where it is not known); or, if nothing has times, count: [exits, of all]
"use strict";
function first_view({ data, search, tabs, $, el, number, percent, plural, time, with_code }) {
  const { first } = data;
  const WORTH = 0.01; // what is less is no promise

  // The section with the evidence, and what stands in if the trace has none.
  const SECTIONS = {
    exits: ["table-section"], interpreted: ["cost", "samples-section"], compiling: ["cost"], gc: ["threads"],
    gvl: ["threads"], fibers: ["threads"], blocked: ["threads", "samples-section"],
    method: ["samples-section", "call-methods-section"],
  };

  function gain_of({ least_ns, most_ns, gain_ns, whole_ns, count }) {
    if (count) return `${percent(count[0], count[1])} of the exits (${number(count[0])})`;
    if (gain_ns === undefined && least_ns >= WORTH * whole_ns)
      return `${percent(least_ns, whole_ns)} to ${percent(most_ns, whole_ns)} (${time(least_ns)} or more)`;
    if (gain_ns === undefined) return `at most ${percent(most_ns, whole_ns)} (${time(most_ns)})`;
    return `about ${percent(gain_ns, whole_ns)} (${percent(least_ns, whole_ns)} to ${percent(most_ns, whole_ns)}, ` +
      `${time(gain_ns)})`;
  }

  // Shows what the row is of, where the page has it.
  function show({ subject, place }) {
    const id = SECTIONS[subject].find((name) => !$(name).hidden);
    if (id) tabs.reveal($(id));
    search.set(subject === "gc" || subject === "gvl" ? "" : place.replace(/ \(.*/, ""));
    if (id) $(id).scrollIntoView({ behavior: "smooth" });
  }

  function row_of(finding) {
    const button = el("button", { type: "button", class: "finding" }, el("b", { text: `${gain_of(finding)}: ` }),
      el("span", { text: finding.what }), el("span", { class: "mono", text: ` ${finding.place}` }));
    button.addEventListener("click", () => show(finding));
    const by = finding.caller ? `; called by ${finding.caller}` : "";
    const text = [finding.cause + by, finding.helps].filter(Boolean).join(". ");
    return el("li", {}, button, el("p", { class: "muted" }, ...with_code(text)));
  }

  const SHOWN_LEAST = 0.001; // of the time
  const { where, whole_ns } = first.requests || first;
  const shown = where.filter(([, ns]) => ns >= SHOWN_LEAST * whole_ns);
  $("first-where").replaceChildren(...shown.map(([state, ns]) => el("div", {},
    el("dt", { text: state }), el("dd", { text: `${percent(ns, whole_ns)}, ${time(ns)}` }))));
  const whose = !first.of_main ? `${plural(first.threads, "thread")}, without blocked time`
    : first.threads === 1 ? "the main thread" : `the main threads of ${plural(first.threads, "process")}`;
  const of_threads = first.where.length > 0 ? `${time(first.whole_ns)} of ${whose}` : "";
  const of_requests = ({ count }) => (count === 1 ? "1 request" : `${number(count)} requests and jobs`);
  $("first-whose").textContent = !first.requests ? of_threads
    : `${time(whole_ns)} of ${of_requests(first.requests)}${of_threads && `; gains are of ${of_threads}`}`;
  $("first-findings").replaceChildren(...first.findings.map(row_of));
  $("first-nothing").hidden = first.findings.length > 0 || first.where.length === 0;
  $("first").hidden = first.findings.length + first.where.length === 0;
}
