// overview.ts: verdict, key numbers, phases, steps, what ran where.
import { bar, h, name } from "../dom";
import { Charts } from "../chart";
import * as f from "../format";
import { phaseColor, css } from "../palette";
import { anything, empty, facts, section, table, type Context, type View } from "../view";
import type { Report } from "../types";
import { findingCard } from "./findings";

function endWords(r: Report): { text: string; bad: boolean } {
  const e = r.run.exit;
  if (e.signal) return { text: `killed by ${e.signal}${e.cause && e.cause !== "signal" ? ` (${f.words(e.cause)})` : ""}`, bad: true };
  if (f.isKnown(e.code)) return { text: `exit ${e.code}${e.code !== 0 && e.cause ? ` (${f.words(e.cause)})` : ""}`, bad: e.code !== 0 };
  return { text: r.run.state, bad: false };
}

function verdict(r: Report): HTMLElement {
  const end = endWords(r);
  return h("div", { class: `verdict${end.bad ? " bad" : ""}` },
    h("p", { class: "main" }, r.summary.verdict ?? "No verdict: too little was recorded."),
    r.summary.why ? h("p", { class: "why" }, r.summary.why) : null,
    r.summary.next ? h("p", { class: "next" }, r.summary.next) : null,
    r.run.death ? h("p", { class: "why" }, r.run.death.text) : null);
}

function numbers(r: Report): HTMLElement {
  const s = r.summary;
  const end = endWords(r);
  const list: [string, string, string | null][] = [
    ["duration", f.seconds(r.run.duration_s), null],
    ["step, median", f.ms(s.step_ms.p50), s.step_ms.count ? `p95 ${f.ms(s.step_ms.p95)} · p99 ${f.ms(s.step_ms.p99)}` : null],
    ["steps", s.step_ms.count ? f.count(s.step_ms.count) : f.MISSING, f.isKnown(s.steps_per_s) ? `${f.digits(s.steps_per_s)} per second` : null],
    ["samples per second", f.isKnown(s.samples_per_s) ? f.count(Math.round(s.samples_per_s)) : f.MISSING, null],
    ["waiting for data", f.percent(s.data_wait_share), "of the main thread"],
    ["CPU", f.isKnown(s.cpu_percent_avg) ? `${f.digits(s.cpu_percent_avg / 100)} cores` : f.MISSING, "average"],
    ["GPU busy", f.percent(s.gpu_busy_share), f.isKnown(s.gpu_busy_share) ? "average" : "no card seen"],
    ["memory, peak", f.mib(s.peak_rss_mb), r.processes.length > 1 ? "largest process, or all (PSS)" : null],
    ["overhead", f.isKnown(s.overhead_percent) ? (s.overhead_percent < 0.01 ? "< 0.01 %" : `${f.digits(s.overhead_percent, 2)} %`) : f.MISSING, "of Sonde inside the program"],
    ["events", f.count(s.events), s.lost ? `${f.count(s.lost)} lost` : "none lost"],
    ["ended", end.text, null],
  ];
  return h("div", { class: "numbers" }, list.map(([label, value, more]) => h("div", { class: "number" }, h("b", null, value), h("span", null, label), more ? h("small", null, more) : null)));
}

export function phaseSplit(r: Report): HTMLElement {
  const shown = r.phases.filter((p) => p.share > 0);
  const split = h("div", { class: "split", role: "img", "aria-label": `Phases: ${shown.map((p) => `${f.words(p.phase)} ${f.percent(p.share)}`).join(", ")}` });
  for (const p of shown) {
    const part = h("i", { title: `${f.words(p.phase)} ${f.percent(p.share)}` });
    part.style.flexGrow = String(p.share * 1000);
    part.style.background = phaseColor(p.phase);
    split.append(part);
  }
  return split;
}

function swatch(phase: string): HTMLElement {
  const s = h("i", { class: "swatch" });
  s.style.background = phaseColor(phase);
  return s;
}

function phases(r: Report): HTMLElement {
  if (r.phases.length === 0) return section("Phases", null, empty("The program recorded no zones on its main thread, so its time has no phases."));
  const most = Math.max(...r.phases.map((p) => p.share), 1e-9);
  const perStep = r.summary.step_ms.count;
  const device = r.phases.some((p) => f.isKnown(p.device_s));
  return section("Phases", "Every second of the main thread in exactly one phase; the shares add up to 100 %.", phaseSplit(r),
    table([...r.phases].sort((a, b) => b.share - a.share), [
      { title: "Phase", cell: (p) => h("span", null, swatch(p.phase), f.words(p.phase)), sort: (p) => p.phase },
      { title: "", wide: true, cell: (p) => bar(p.share / most, phaseColor(p.phase), `${f.words(p.phase)} ${f.percent(p.share)}`) },
      { title: "Share", right: true, cell: (p) => f.percent(p.share), sort: (p) => p.share },
      { title: "Time", right: true, cell: (p) => f.seconds(p.total_s), sort: (p) => p.total_s },
      ...(perStep ? [{ title: "Per step", right: true, cell: (p: (typeof r.phases)[0]) => f.seconds(p.total_s / perStep), hint: "time divided by the number of steps" }] : []),
      { title: "Times", right: true, cell: (p) => f.count(p.count), sort: (p) => p.count },
      ...(device ? [{ title: "Device", right: true, cell: (p: (typeof r.phases)[0]) => f.seconds(p.device_s) }] : []),
    ], { limit: 20 }));
}

function steps(context: Context, charts: Charts): HTMLElement | null {
  const s = context.run.timeline.steps;
  if (s.points.length < 2) return null;
  const several = s.per_point > 1;
  const x = s.points.map((p) => p[0]!);
  return section("Steps over the run", several ? `Each point stands for ${s.per_point} steps.` : null,
    charts.add({ x, height: 170, xLabel: "seconds into the run", formatX: (v) => f.digits(v), format: (v) => f.ms(v), label: "Duration of steps over time",
      lines: [
        { label: several ? "mean step" : "step", color: css("--accent"), values: s.points.map((p) => p[1]!), width: 1.2 },
        ...(several ? [{ label: "longest", color: css("--faint"), values: s.points.map((p) => p[2] ?? null), width: 1 }] : []),
      ] }));
}

interface Epoch { epoch: number; start_s: number | null; duration_s: number | null; steps: number; samples: number | null; samples_per_s: number | null }

function epochs(list: Epoch[]): HTMLElement {
  const most = Math.max(...list.map((e) => e.duration_s ?? 0), 1e-9);
  return section("Epochs", null, table(list, [
    { title: "Epoch", cell: (e) => f.count(e.epoch), sort: (e) => e.epoch },
    { title: "", wide: true, cell: (e) => bar((e.duration_s ?? 0) / most, css("--accent"), f.seconds(e.duration_s)) },
    { title: "Took", right: true, cell: (e) => f.seconds(e.duration_s), sort: (e) => e.duration_s },
    { title: "Began", right: true, cell: (e) => f.seconds(e.start_s), sort: (e) => e.start_s },
    { title: "Steps", right: true, cell: (e) => f.count(e.steps), sort: (e) => e.steps },
    { title: "Samples", right: true, cell: (e) => f.count(e.samples), sort: (e) => e.samples },
    { title: "Samples per second", right: true, cell: (e) => (f.isKnown(e.samples_per_s) ? f.count(Math.round(e.samples_per_s)) : f.MISSING), sort: (e) => e.samples_per_s },
  ], { limit: 20 }));
}

function git(value: unknown): string | null {
  if (value === null || typeof value !== "object") return typeof value === "string" ? value : null;
  const g = value as { commit?: string; branch?: string; dirty?: boolean | null };
  return [g.commit?.slice(0, 12), g.branch ? `on ${g.branch}` : null, g.dirty ? "with changes" : null].filter(Boolean).join(" ") || null;
}

function surroundings(r: Report): HTMLElement {
  const e = r.run;
  const pairs = (o: Record<string, unknown>): string => Object.entries(o).map(([k, v]) => `${k}=${String(v)}`).join("  ");
  return section("The run", null, facts([
    ["command", e.command.join(" ")], ["name", e.name], ["id", e.id], ["started", e.started?.replace("T", " ").replace(/\.\d+Z/, " UTC")],
    ["folder", e.cwd], ["host", e.host], ["level", e.level],
    ["rank", f.isKnown(e.world_size) && e.world_size > 1 ? `${e.rank} of ${e.world_size}` : null],
    ["tags", pairs(e.tags)], ["parameters", pairs(e.params)], ["metrics", Object.entries(e.metrics).map(([k, v]) => `${k} ${f.isKnown(v) ? f.digits(v, 5) : f.MISSING}`).join(" · ")],
    ...Object.entries(r.hardware ?? {}).map(([k, v]): [string, Node] => k === "memory_mb" ? ["memory", document.createTextNode(f.mib(v as number))] : [f.words(k), anything(v, 3)]),
    ["git", git(r.environment?.git)],
    ...Object.entries(r.environment ?? {}).filter(([k, v]) => v !== null && k !== "argv" && k !== "git").map(([k, v]): [string, Node] => [k, anything(v, 3)]),
  ]));
}

export const overview: View = {
  id: "overview", title: "Overview", group: "Summary", has: () => true,
  render(into, context) {
    const r = context.run.report;
    const charts = new Charts();
    into.append(verdict(r), numbers(r));
    if (r.bottlenecks.length > 0) into.append(section("Findings", null, ...r.bottlenecks.slice(0, 3).map((b) => findingCard(b, true))));
    into.append(phases(r));
    const s = steps(context, charts);
    if (s) into.append(s);
    if (r.open_zones.length > 0) into.append(section("Open when it ended", "What threads were in the middle of.", table(r.open_zones, [
      { title: "Thread", cell: (t) => `${t.role ?? "process"} ${t.pid}, ${t.thread ?? t.tid}${t.main ? " (main)" : ""}` },
      { title: "Zones, outermost first", cell: (t) => name(t.zones.map((z) => z.name).join(" › ")) },
      { title: "Silent", right: true, cell: (t) => f.seconds(t.silent_s) },
    ])));
    if (r.epochs.length > 0) into.append(epochs(r.epochs as unknown as Epoch[]));
    into.append(surroundings(r));
    if (r.notes.length > 0) into.append(section("Notes", null, h("ul", { class: "small" }, r.notes.map((n) => h("li", null, n)))));
    return () => charts.destroy();
  },
};
