// memory.ts: memory over time with the phases under it; who allocated, who kept.
import { bar, h, name, place } from "../dom";
import { Charts } from "../chart";
import * as f from "../format";
import { css, phaseColor, phaseOrder, runColor } from "../palette";
import { Surface } from "../canvas";
import { empty, section, table, type Context, type View } from "../view";
import type { AllocSite, Lane, Series } from "../types";
import { align } from "./monitors";

// What the run held; what the machine has is among the monitors. One process is the run.
function memorySeries(m: Record<string, Series>): [string, Series][] {
  const all = Object.entries(m).filter(([k, s]) => s.points.length > 1 && /^(rss|pss|rss_private|rss_shared|gpu_memory_used|gpu_memory)(\/|$)/.test(k));
  const processes = all.filter(([k]) => k.startsWith("rss/"));
  const often = Math.max(0, ...all.map(([, s]) => s.points.length)) / 3;
  return all.filter(([k, s]) => s.points.length >= often && !/^(pss|rss_private|rss_shared)\//.test(k) && (!k.startsWith("rss/") || processes.length > 1));
}

// The phases of one lane as a strip, as long as the chart above.
export function strip(lane: Lane, duration: number, height = 26): { element: HTMLElement; destroy: () => void } {
  const phases = phaseOrder.filter((p) => lane.busy[p]);
  const surface = new Surface((s) => {
    s.pen.fillStyle = css("--sunk");
    s.pen.fillRect(0, 0, s.width, s.height);
    const n = lane.buckets;
    const columns = Math.min(n, Math.ceil(s.width));
    for (let c = 0; c < columns; c++) {
      const from = Math.floor((c * n) / columns), to = Math.max(from + 1, Math.floor(((c + 1) * n) / columns));
      let y = s.height;
      for (const p of phases) {
        let sum = 0;
        for (let b = from; b < to; b++) sum += lane.busy[p]![b]!;
        const tall = (sum / (to - from) / 100) * s.height;
        if (tall <= 0) continue;
        s.pen.fillStyle = phaseColor(p);
        s.pen.fillRect((c * s.width) / columns, y - tall, s.width / columns + 0.5, tall);
        y -= tall;
      }
    }
  }, `Phases over ${f.seconds(duration)}: ${phases.map(f.words).join(", ")}`);
  surface.canvas.style.height = `${height}px`;
  return { element: surface.canvas, destroy: () => surface.destroy() };
}

export function phaseLegend(phases: string[]): HTMLElement {
  return h("div", { class: "legend" }, phases.map((p) => { const s = h("i", { class: "swatch" }); s.style.background = phaseColor(p); return h("span", null, s, f.words(p)); }));
}

function overTime(c: Context, charts: Charts): HTMLElement {
  const list = memorySeries(c.run.report.monitors).sort((a, b) => (b[1].max ?? 0) - (a[1].max ?? 0)).slice(0, 7);
  if (list.length === 0) return section("Memory over time", null, empty("Memory was not sampled often enough for a picture."));
  const { x, values } = align(list);
  const duration = c.run.timeline.duration_s;
  // The chart ends where the run ends, so that the strip below is in step with it.
  const ends = [0, ...x.filter((t) => t > 0 && t < duration), duration];
  const pad = values.map((v) => { const at = new Map(x.map((t, i) => [t, v[i]!])); return ends.map((t) => at.get(t) ?? null); });
  for (const v of pad) { if (v[0] === null) v[0] = v[1] ?? null; if (v[v.length - 1] === null) v[v.length - 1] = v[v.length - 2] ?? null; }
  const unit = list[0]![1].unit;
  const box = section("Memory over time", "Below the lines: what the main thread was doing.", charts.add({
    x: ends, height: 250, formatX: (v) => f.digits(v), format: (v) => f.value(v, unit), label: "Memory over time", legend: true, xLabel: undefined,
    lines: list.map(([k], i) => ({ label: k, color: runColor(i), values: pad[i]!, fill: i === 0 && list.length === 1 })),
  }));
  const main = c.run.timeline.lanes.find((l) => l.trains) ?? c.run.timeline.lanes[0];
  if (main) {
    const under = strip(main, duration);
    charts.keep(under);
    box.append(h("div", { class: "strip" }, under.element, phaseLegend(phaseOrder.filter((p) => main.busy[p]))));
  }
  return box;
}

const where = (s: AllocSite): HTMLElement => h("span", null, name(s.function ?? s.module ?? "?"), place(s.file, s.line), s.zone ? name(`in ${s.zone}`, "path") : null);

export const memory: View = {
  id: "memory", title: "Memory", group: "Resources",
  has: ({ run }) => memorySeries(run.report.monitors).length > 0 || f.isKnown(run.report.allocations?.count),
  render(into, c) {
    const charts = new Charts();
    const a = c.run.report.allocations;
    if (a && f.isKnown(a.count)) into.append(h("div", { class: "numbers" }, ([
      ["resident, peak", f.mib(c.run.report.summary.peak_rss_mb), null],
      ["allocations", f.count(a.count), f.isKnown(a.frees) ? `${f.count(a.frees)} frees` : null],
      ["allocated in all", f.bytes(a.bytes), null],
      ["heap, peak", f.bytes(a.peak_bytes), "of one process"],
      ["kept at the end", f.bytes(a.live_bytes), null],
    ] as [string, string, string | null][]).map(([k, v, more]) => h("div", { class: "number" }, h("b", null, v), h("span", null, k), more ? h("small", null, more) : null))));
    into.append(overTime(c, charts));
    if (a && a.leaks.length > 0) into.append(section("Growing", "Places whose blocks come from all over the run and were never freed.", table(a.leaks, [
      { title: "Where", cell: where },
      { title: "Kept", right: true, cell: (s) => f.bytes(s.live_bytes), sort: (s) => s.live_bytes },
      { title: "Per second", right: true, cell: (s) => f.bytes(s.bytes_per_s), sort: (s) => s.bytes_per_s },
      { title: "Per step", right: true, cell: (s) => f.bytes(s.bytes_per_step), sort: (s) => s.bytes_per_step },
    ])));
    if (a && a.sites.length > 0) {
      const most = Math.max(...a.sites.map((s) => s.bytes), 1);
      into.append(section("Who allocates", "Estimated from samples; the flame graph shows the same by call path.", table(a.sites, [
        { title: "Where", cell: where, sort: (s) => s.function },
        { title: "", wide: true, cell: (s) => bar(s.bytes / most, css("--accent"), f.bytes(s.bytes)) },
        { title: "Bytes", right: true, cell: (s) => f.bytes(s.bytes), sort: (s) => s.bytes },
        { title: "Times", right: true, cell: (s) => f.count(Math.round(s.count)), sort: (s) => s.count },
        { title: "At the peak", right: true, cell: (s) => f.bytes(s.peak_bytes), sort: (s) => s.peak_bytes },
        { title: "Kept", right: true, cell: (s) => f.bytes(s.live_bytes), sort: (s) => s.live_bytes },
        { title: "Lives", right: true, cell: (s) => f.seconds(s.mean_lifetime_s), sort: (s) => s.mean_lifetime_s },
      ], { limit: 25 })));
    }
    if (a && a.zones.length > 0) into.append(section("By zone", "Exact counts.", table(a.zones, [
      { title: "Zone", cell: (z) => name(z.zone ?? "(outside of zones)"), sort: (z) => z.zone },
      { title: "Allocations", right: true, cell: (z) => f.count(z.count), sort: (z) => z.count },
      { title: "Bytes", right: true, cell: (z) => f.bytes(z.bytes), sort: (z) => z.bytes },
      { title: "Frees", right: true, cell: (z) => f.count(z.frees), sort: (z) => z.frees },
      { title: "Freed", right: true, cell: (z) => f.bytes(z.freed_bytes), sort: (z) => z.freed_bytes },
    ], { limit: 20, sortBy: 2 })));
    return () => charts.destroy();
  },
};
