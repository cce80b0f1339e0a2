// compare.ts: several runs side by side: first what differs about them, then what came
// of it. No verdict on speed where the hardware differs.
import { bar, h, name } from "../dom";
import { Charts } from "../chart";
import * as f from "../format";
import { phaseColor, phaseOrder, runColor } from "../palette";
import { empty, section, table, type Context, type View } from "../view";
import type { Num, Report, Run } from "../types";
import { phaseSplit } from "./overview";
import { histogram } from "./distributions";

const label = (r: Report, i: number): string => `${i + 1}: ${(r.run.name ?? r.run.id).slice(0, 40)}`;
const text = (v: unknown): string => (v === null || v === undefined ? "" : typeof v === "object" ? JSON.stringify(v) : String(v));

function surroundings(r: Report): Map<string, string> {
  const m = new Map<string, string>();
  m.set("command", r.run.command.join(" "));
  for (const [k, v] of Object.entries(r.run.params)) m.set(`parameter ${k}`, v);
  for (const [k, v] of Object.entries(r.run.tags)) m.set(`tag ${k}`, v);
  for (const [k, v] of Object.entries(r.hardware ?? {})) m.set(f.words(k), text(v));
  for (const [k, v] of Object.entries(r.environment ?? {})) if (k !== "argv") m.set(k, text(v));
  m.set("host", r.run.host ?? "");
  m.set("level", r.run.level ?? "");
  return m;
}

export function differing(reports: Report[]): [string, string[]][] {
  const all = reports.map(surroundings);
  const keys = [...new Set(all.flatMap((m) => [...m.keys()]))];
  return keys.map((k): [string, string[]] => [k, all.map((m) => m.get(k) ?? "")]).filter(([, v]) => new Set(v).size > 1);
}

const metrics: [string, (r: Report) => Num, string, boolean | null][] = [
  // name, value, unit, whether less is better
  ["step, median", (r) => r.summary.step_ms.p50, "ms", true],
  ["step, p95", (r) => r.summary.step_ms.p95, "ms", true],
  ["step, p99", (r) => r.summary.step_ms.p99, "ms", true],
  ["steps per second", (r) => r.summary.steps_per_s, "", false],
  ["samples per second", (r) => r.summary.samples_per_s, "", false],
  ["waiting for data", (r) => r.summary.data_wait_share, "share", true],
  ["GPU busy", (r) => r.summary.gpu_busy_share, "share", false],
  ["CPU, cores", (r) => (f.isKnown(r.summary.cpu_percent_avg) ? r.summary.cpu_percent_avg / 100 : null), "", null],
  ["memory, peak", (r) => r.summary.peak_rss_mb, "mb", true],
  ["FLOPs per step", (r) => r.summary.flops_per_step, "flop", null],
  ["FLOPs per second", (r) => r.summary.flops_per_s, "flop", false],
  ["system calls", (r) => r.summary.syscalls, "", true],
  ["allocations", (r) => r.allocations?.count, "", null],
  ["energy", (r) => (typeof r.energy?.joules === "number" ? r.energy.joules : null), "J", true],
  ["duration", (r) => r.run.duration_s, "s", null],
];

function numbers(reports: Report[], hardware: boolean): HTMLElement {
  const names = [...new Set(reports.flatMap((r) => Object.keys(r.run.metrics)))].slice(0, 20);
  const rows = [...metrics, ...names.map((n): (typeof metrics)[0] => [n, (r) => r.run.metrics[n], "", null])].filter(([, get]) => reports.some((r) => f.isKnown(get(r))));
  return table(rows, [
    { title: "", cell: ([n]) => name(n, "value") },
    ...reports.map((r, i) => ({ title: label(r, i), right: true, cell: ([, get, unit]: (typeof metrics)[0]) => f.value(get(r), unit) })),
    ...reports.slice(1).map((r, i) => ({ title: reports.length > 2 ? `${i + 2} against 1` : "Change", right: true, cell: ([, get, , less]: (typeof metrics)[0]) => {
      const a = get(reports[0]!), b = get(r);
      const d = f.difference(a, b);
      const small = f.isKnown(a) && f.isKnown(b) && Math.abs(b - a) <= 0.05 * Math.abs(a);
      const better = less === null || hardware || small || !f.isKnown(a) || !f.isKnown(b) ? "" : (b < a) === less ? "good" : "bad";
      return h("span", { class: better ? `chip ${better}` : "" }, d);
    } })),
  ]);
}

function phases(reports: Report[]): HTMLElement {
  const perStep = reports.every((r) => r.summary.step_ms.count > 0);
  const of = (r: Report, p: string): number => { const x = r.phases.find((q) => q.phase === p); return x ? (perStep ? x.total_s / r.summary.step_ms.count : x.total_s) : 0; };
  const used = phaseOrder.filter((p) => reports.some((r) => of(r, p) > 0));
  const most = Math.max(...used.flatMap((p) => reports.map((r) => of(r, p))), 1e-12);
  return section(perStep ? "Phases, time per step" : "Phases, time in all", null,
    h("div", null, reports.map((r, i) => h("div", null, h("p", { class: "small" }, label(r, i)), phaseSplit(r)))),
    table(used, [
      { title: "Phase", cell: (p) => f.words(p) },
      ...reports.flatMap((r, i) => [
        { title: "", wide: reports.length < 3, cell: (p: string) => bar(of(r, p) / most, phaseColor(p), f.seconds(of(r, p))) },
        { title: label(r, i), right: true, cell: (p: string) => f.seconds(of(r, p)), sort: (p: string) => of(r, p) },
      ]),
      { title: "Change", right: true, cell: (p) => f.difference(of(reports[0]!, p), of(reports[reports.length - 1]!, p)) },
    ]));
}

function operations(reports: Report[]): HTMLElement {
  const first = reports[0]!, last = reports[reports.length - 1]!;
  const per = (r: Report): number => r.summary.step_ms.count || 1;
  const perStep = first.summary.step_ms.count > 0 && last.summary.step_ms.count > 0;
  const by = (r: Report): Map<string, number> => new Map(r.operations.map((o) => [o.path.join(" › "), o.self_s / (perStep ? per(r) : 1)]));
  const a = by(first), b = by(last);
  const rows = [...new Set([...a.keys(), ...b.keys()])].map((k) => ({ k, a: a.get(k) ?? 0, b: b.get(k) ?? 0 })).sort((x, y) => Math.abs(y.b - y.a) - Math.abs(x.b - x.a)).slice(0, 200);
  return section("Operations that changed most", perStep ? "Self time per step, first and last run." : "Self time, first and last run.", rows.length === 0 ? empty("No operations.") : table(rows, [
    { title: "Operation", cell: (r) => name(r.k), sort: (r) => r.k },
    { title: label(first, 0), right: true, cell: (r) => f.seconds(r.a), sort: (r) => r.a },
    { title: label(last, reports.length - 1), right: true, cell: (r) => f.seconds(r.b), sort: (r) => r.b },
    { title: "Difference", right: true, cell: (r) => (r.b >= r.a ? "+" : "−") + f.seconds(Math.abs(r.b - r.a)), sort: (r) => Math.abs(r.b - r.a) },
    { title: "", right: true, cell: (r) => f.difference(r.a, r.b) },
  ], { limit: 25 }));
}

function steps(runs: Run[]): HTMLElement | null {
  const having = runs.map((r, i) => ({ r, i, d: r.distributions.find((d) => d.path === null) })).filter((x) => x.d !== undefined);
  if (having.length === 0) return null;
  return section("Steps", "The same kind of picture for each run; mind the axes.", h("div", { class: "grid2" }, having.map(({ r, i, d }) => h("figure", { class: "panel" }, h("figcaption", null, h("b", null, label(r.report, i)), h("p", { class: "small" }, `median ${f.ms(d!.quantiles_ms[3])} · p99 ${f.ms(d!.quantiles_ms[6])}`)), histogram(d!, runColor(i))))));
}

// One picture a metric, a line for each run that told it. Runs have steps of their own:
// lines share an axis, and a gap is bridged only within one line.
function courseFigure(runs: Run[], metric: string, charts: Charts): HTMLElement {
  const having = runs.map((r, i) => ({ i, r, c: (r.courses ?? []).find((c) => c.name === metric) })).filter((x) => x.c !== undefined);
  const x = [...new Set(having.flatMap(({ c }) => c!.steps))].sort((a, b) => a - b);
  const lines = having.map(({ i, r, c }) => {
    const at = new Map(c!.steps.map((s, k) => [s, c!.values[k]!]));
    return { label: label(r.report, i), color: runColor(i), values: x.map((s) => (at.has(s) ? at.get(s)! : undefined)) as (number | null)[], points: c!.steps.length < 3 };
  });
  const ends = having.map(({ i, c }) => `${i + 1}: ${f.value(c!.values[c!.values.length - 1], "")}`).join(" · ");
  return h("figure", { class: "panel" }, h("figcaption", null, h("b", null, name(metric, "value")), h("span", { class: "small" }, `  last ${ends}${having.some(({ c }) => c!.partial) ? " · the beginning is missing" : ""}`)),
    charts.add({ x, height: 160, zero: false, xLabel: "step", format: (n) => f.value(n, ""), formatX: (n) => f.digits(n), label: `${metric} by step, of each run`, legend: true, lines }));
}

function courses(runs: Run[], charts: Charts): HTMLElement | null {
  const told = runs.map((r) => (r.courses ?? []).filter((c) => c.steps.length > 1 && !/@rank\d+$/.test(c.name)).map((c) => c.name));
  const names = [...new Set(told.flat())].slice(0, 12);
  return names.length === 0 ? null : section("Metrics by step", "As the program told them; thinned, but no peak is lost. Of ranks the lowest.", h("div", { class: "grid2" }, names.map((n) => courseFigure(runs, n, charts))));
}

export const compare: View = {
  id: "compare", title: "Comparison", group: "Summary",
  has: ({ doc }) => doc.runs.length > 1,
  render(into, c: Context) {
    const runs = c.doc.runs;
    const reports = runs.map((r) => r.report);
    if (runs.length < 2) { into.append(empty("One run only. Give several: sonde report A B --format html")); return undefined; }
    const charts = new Charts();
    const differences = differing(reports);
    const hardware = new Set(reports.map((r) => JSON.stringify(r.hardware))).size > 1;
    if (hardware) into.append(h("p", { class: "empty", role: "note" }, "These runs had different hardware: their speeds say nothing about the program. No verdict is given."));
    into.append(section("What differs", null, differences.length === 0 ? empty("Nothing that was recorded: the same command, hardware and environment.") : table(differences, [
      { title: "", cell: ([k]) => f.words(k) },
      ...reports.map((r, i) => ({ title: label(r, i), cell: ([, v]: [string, string[]]) => name(v[i] || "–", "value") })),
    ])), section("Numbers", "One run each: a difference may be chance. sonde check measures it with an interval.", numbers(reports, hardware)), phases(reports));
    const s = steps(runs);
    if (s) into.append(s);
    const m = courses(runs, charts);
    if (m) into.append(m);
    into.append(operations(reports), h("p", { class: "small" }, "The flame graph compares two runs call path by call path: choose the other one there."));
    return () => charts.destroy();
  },
};
