// monitors.ts: every series that was sampled, on one time axis.
import { h, name } from "../dom";
import { Charts } from "../chart";
import * as f from "../format";
import { css, runColor } from "../palette";
import { empty, section, table, type View } from "../view";
import type { Series } from "../types";

// "cpu_core/cpu3": cores, cards and processes of one metric share a chart.
function grouped(monitors: Record<string, Series>): Map<string, [string, Series][]> {
  const groups = new Map<string, [string, Series][]>();
  for (const [key, s] of Object.entries(monitors)) {
    const metric = key.split("/")[0]!;
    const list = groups.get(metric) ?? [];
    list.push([key, s]);
    groups.set(metric, list);
  }
  return groups;
}

// Series sampled at different moments, on the union of their moments.
export function align(series: [string, Series][]): { x: number[]; values: (number | null)[][] } {
  const x = [...new Set(series.flatMap(([, s]) => s.points.map((p) => p[0])))].sort((a, b) => a - b);
  const at = new Map(x.map((t, i) => [t, i]));
  const values = series.map(([, s]) => {
    const v: (number | null)[] = new Array<number | null>(x.length).fill(null);
    for (const p of s.points) v[at.get(p[0])!] = p[1];
    return v;
  });
  return { x, values };
}

export const monitors: View = {
  id: "monitors", title: "Monitors", group: "Resources",
  has: ({ run }) => Object.keys(run.report.monitors).length > 0,
  render(into, { run }) {
    const all = run.report.monitors;
    if (Object.keys(all).length === 0) { into.append(empty("No monitor ran.")); return; }
    const charts = new Charts();
    const boxes: HTMLElement[] = [];
    const lead: string[] = ["cpu", "rss", "gpu", "disk", "read", "net", "power", "temp"];
    const order = (m: string): number => { const i = lead.findIndex((l) => m.startsWith(l)); return i < 0 ? 99 : i; };
    for (const [metric, list] of [...grouped(all)].sort((a, b) => order(a[0]) - order(b[0]))) {
      const shown = list.filter(([, s]) => s.points.length > 1).sort((a, b) => (b[1].avg ?? 0) - (a[1].avg ?? 0)).slice(0, 8);
      if (shown.length === 0) continue;
      const { x, values } = align(shown);
      const total = shown.find(([k]) => k === metric)?.[1] ?? shown[0]![1];
      boxes.push(h("figure", { class: "panel" }, h("figcaption", null, h("b", null, f.words(metric)), h("span", { class: "small" }, ` average ${f.value(total.avg, total.unit)} · most ${f.value(total.max, total.unit)}${list.length > shown.length ? ` · ${shown.length} of ${list.length} shown` : ""}`)),
        charts.add({ x, height: 140, sync: "monitors", format: (v) => f.value(v, total.unit), formatX: (v) => f.digits(v), label: `${metric} over time`, legend: shown.length > 1,
          lines: shown.map(([k, ], i) => ({ label: k === metric ? metric : (k.split("/").slice(1).join("/") || k), color: shown.length === 1 ? css("--accent") : runColor(i), values: values[i]!, fill: shown.length === 1 })) })));
    }
    into.append(h("p", { class: "lead" }, `Sampled every ${f.seconds(run.report.monitoring.interval_s)}, ${f.count(run.report.monitoring.rounds)} rounds. Times are seconds into the run.`), h("div", { class: "grid2" }, boxes));
    into.append(section("All series", null, table(Object.entries(all), [
      { title: "Series", cell: ([k]) => name(k), sort: ([k]) => k },
      { title: "Average", right: true, cell: ([, s]) => f.value(s.avg, s.unit), sort: ([, s]) => s.avg },
      { title: "Least", right: true, cell: ([, s]) => f.value(s.min, s.unit) },
      { title: "Most", right: true, cell: ([, s]) => f.value(s.max, s.unit), sort: ([, s]) => s.max },
      { title: "Last", right: true, cell: ([, s]) => f.value(s.last, s.unit) },
      { title: "Samples", right: true, cell: ([, s]) => f.count(s.samples), sort: ([, s]) => s.samples },
    ], { limit: 40 })));
    return () => charts.destroy();
  },
};
