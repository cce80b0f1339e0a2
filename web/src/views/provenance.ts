// provenance.ts: how each number came about; what could not be measured, and why.
import { h, name } from "../dom";
import * as f from "../format";
import { section, table, type View } from "../view";

export const provenance: View = {
  id: "provenance", title: "Provenance", group: "Trust",
  has: () => true,
  render(into, { run }) {
    const r = run.report;
    const s = r.summary;
    into.append(h("p", { class: "lead" }, "Every number is measured, modelled or unavailable. What is missing is never shown as zero."));
    const rank: Record<string, number> = { measured: 0, modelled: 1, unavailable: 2 };
    into.append(section("Where the numbers come from", null, table(r.provenance, [
      { title: "Metric", cell: (p) => name(p.metric), sort: (p) => p.metric },
      { title: "Status", cell: (p) => h("span", { class: `chip ${p.status}` }, p.status), sort: (p) => rank[p.status] ?? 3 },
      { title: "Method", cell: (p) => name(p.method ?? "", "value") },
      { title: "Resolution", cell: (p) => name(p.resolution ?? "", "value") },
    ], { limit: 200 })));
    into.append(section("Trust", null, h("div", { class: "numbers" }, ([
      ["events", f.count(s.events)], ["lost", f.count(s.lost)], ["clock, worst error", f.seconds(f.isKnown(s.clock_error_ns) ? s.clock_error_ns / 1e9 : null)],
      ["overhead in the program", f.isKnown(s.overhead_percent) ? `${f.digits(s.overhead_percent, 2)} %` : f.MISSING],
      ["CPU time of the supervisor", f.seconds(s.supervisor_cpu_s)], ["memory of the supervisor", f.mib(s.overhead_mb)],
    ] as [string, string][]).map(([k, v]) => h("div", { class: "number" }, h("b", null, v), h("span", null, k))))));
    if (r.notes.length > 0) into.append(section("Notes", null, h("ul", { class: "small" }, r.notes.map((n) => h("li", null, n)))));
  },
};
