// calls.ts: how often operations run, and what a call costs.
import { bar, h, name, place } from "../dom";
import * as f from "../format";
import { phaseColor } from "../palette";
import { empty, section, table, type View } from "../view";
import type { Operation } from "../types";

export const calls: View = {
  id: "calls", title: "Operations", group: "Time",
  has: ({ run }) => run.report.operations.length > 0,
  render(into, { run }) {
    const r = run.report;
    if (r.operations.length === 0) { into.append(empty("No zones were recorded.")); return; }
    const ops = r.operations.filter((o) => o.kind !== "root");
    const often = [...ops].sort((a, b) => b.count - a.count).slice(0, 15);
    const most = Math.max(...often.map((o) => o.count), 1);
    const steps = r.summary.step_ms.count;
    const label = (o: Operation): HTMLElement => h("span", null, name(o.name), place(o.file, o.line), o.path.length > 1 ? name(o.path.slice(0, -1).join(" › "), "path") : null);
    into.append(section("How often", "Calls by operation.", table(often, [
      { title: "Operation", cell: label },
      { title: "", wide: true, cell: (o) => bar(o.count / most, phaseColor(o.phase), f.count(o.count)) },
      { title: "Calls", right: true, cell: (o) => f.count(o.count) },
      { title: "Per second", right: true, cell: (o) => (f.isKnown(o.calls_per_s) ? f.digits(o.calls_per_s) : f.MISSING) },
      ...(steps ? [{ title: "Per step", right: true, cell: (o: Operation) => f.digits(o.count / steps) }] : []),
    ])));
    let text = "";
    const holder = h("div");
    const fill = (): void => {
      const rows = text ? ops.filter((o) => o.path.join(" ").toLowerCase().includes(text)) : ops;
      holder.replaceChildren(rows.length === 0 ? empty("Nothing by that name.") : table(rows, [
        { title: "Operation", cell: label, sort: (o) => o.name },
        { title: "Phase", cell: (o) => (o.phase ? f.words(o.phase) : ""), sort: (o) => o.phase ?? "" },
        { title: "Calls", right: true, cell: (o) => f.count(o.count), sort: (o) => o.count },
        { title: "Total", right: true, cell: (o) => f.seconds(o.total_s), sort: (o) => o.total_s, hint: "of all threads and processes" },
        { title: "Self", right: true, cell: (o) => f.seconds(o.self_s), sort: (o) => o.self_s, hint: "without operations inside it" },
        { title: "Mean", right: true, cell: (o) => f.ms(o.mean_ms), sort: (o) => o.mean_ms },
        { title: "Median", right: true, cell: (o) => f.ms(o.p50_ms), sort: (o) => o.p50_ms },
        { title: "p95", right: true, cell: (o) => f.ms(o.p95_ms), sort: (o) => o.p95_ms },
        { title: "p99", right: true, cell: (o) => f.ms(o.p99_ms), sort: (o) => o.p99_ms },
        { title: "Longest", right: true, cell: (o) => f.ms(o.max_ms), sort: (o) => o.max_ms },
      ], { sortBy: 3, limit: 60 }));
    };
    const box = h("input", { type: "search", placeholder: "Filter (/)", "aria-label": "Filter operations", oninput: (e: Event) => { text = (e.target as HTMLInputElement).value.toLowerCase(); fill(); } });
    fill();
    into.append(section("All operations", r.operations_left_out.count ? `${f.count(r.operations_left_out.count)} shorter paths are left out: ${f.seconds(r.operations_left_out.self_s)} of their own.` : null, h("div", { class: "controls" }, box), holder));
  },
};
