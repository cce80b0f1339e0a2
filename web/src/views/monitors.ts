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

const groups: [string, RegExp][] = [
  ["GPU", /^(gpu|nvml)/], ["CPU", /^(cpu|load|runnable|context|threads|processes|pressure_cpu|cgroup_throttled)/],
  ["Memory", /^(rss|pss|swap|memory|page_faults|pressure_memory|cgroup_memory|cgroup_oom|sonde)/],
  ["Files and disks", /^(read|write|disk|device|pressure_io)/], ["Network", /^(net|tcp)/], ["Power and temperature", /^(power|energy|temp|fan)/], ["Other", /./],
];
const groupOf = (metric: string): number => groups.findIndex(([, pattern]) => pattern.test(metric));
const flat = (list: [string, Series][]): boolean => list.every(([, s]) => (s.max ?? 0) === (s.min ?? 0));

function figure(metric: string, list: [string, Series][], charts: Charts): HTMLElement {
  const alone = list.filter(([k]) => k.startsWith(`${metric}/`)).length < 2;
  const wanted = alone && list.some(([k]) => k === metric) ? list.filter(([k]) => k === metric) : list;
  const shown = [...wanted].sort((a, b) => (b[1].avg ?? 0) - (a[1].avg ?? 0)).slice(0, 8);
  const { x, values } = align(shown);
  const total = list.find(([k]) => k === metric)?.[1] ?? shown[0]![1];
  return h("figure", { class: "panel" }, h("figcaption", null, h("b", null, f.words(metric)), h("span", { class: "small" }, `  average ${f.value(total.avg, total.unit)} · most ${f.value(total.max, total.unit)}${wanted.length > shown.length ? ` · ${shown.length} of ${wanted.length} shown` : ""}`)),
    charts.add({ x, height: 130, sync: "monitors", format: (v) => f.value(v, total.unit), formatX: (v) => f.digits(v), label: `${f.words(metric)} over time`, legend: shown.length > 1,
      lines: shown.map(([k], i) => ({ label: k === metric ? "all" : k.split("/").slice(1).join("/") || k, color: shown.length === 1 ? css("--accent") : runColor(i), values: values[i]!, fill: shown.length === 1 })) }));
}

export const monitors: View = {
  id: "monitors", title: "Monitors", group: "Resources",
  has: ({ run }) => Object.keys(run.report.monitors).length > 0,
  render(into, { run }) {
    const all = run.report.monitors;
    if (Object.keys(all).length === 0) { into.append(empty("No monitor ran.")); return undefined; }
    const charts = new Charts();
    const by = [...grouped(all)].map(([metric, list]): [string, [string, Series][]] => [metric, list.filter(([, s]) => s.points.length > 1)]);
    into.append(h("p", { class: "lead" }, `Sampled every ${f.seconds(run.report.monitoring.interval_s)}, ${f.count(run.report.monitoring.rounds)} rounds; times are seconds into the run. What never changed is in the table only.`));
    groups.forEach(([title], g) => {
      const moving = by.filter(([m, list]) => groupOf(m) === g && list.length > 0 && !flat(list));
      if (moving.length === 0) return;
      into.append(h("h3", { class: "group" }, title), h("div", { class: "grid2" }, moving.map(([m, list]) => figure(m, list, charts))));
    });
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
