// distributions.ts: how long steps and operations took: not a mean but a shape.
import { h, svg, name } from "../dom";
import * as f from "../format";
import { css, phaseColor } from "../palette";
import { empty, section, siteName, table, type Context, type View } from "../view";
import type { Histogram } from "../types";

// Bars on a logarithmic axis, with the quantiles as lines.
export function histogram(d: Histogram, color: string, width = 520, height = 150): SVGElement {
  const left = 8, right = 8, top = 18, bottom = 24;
  const first = d.bars[0], last = d.bars[d.bars.length - 1];
  if (!first || !last) return svg("svg", { class: "hist", viewBox: `0 0 ${width} 30` });
  let low = Math.log10(Math.max(first[0], 1e-7)), high = Math.log10(Math.max(last[1], 1e-7));
  if (high - low < 0.02) { low -= 0.01; high += 0.01; }
  const x = (ms: number): number => left + ((Math.log10(Math.max(ms, 1e-7)) - low) / (high - low)) * (width - left - right);
  // Bars have different widths: their height is calls per unit of axis.
  const density = d.bars.map(([a, b, n]) => n / Math.max(1e-9, Math.log10(b / Math.max(a, 1e-9))));
  const most = Math.max(...density, 1e-9);
  const parts: Node[] = [svg("line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom })];
  d.bars.forEach(([a, b, n], i) => {
    const tall = (density[i]! / most) * (height - top - bottom);
    const box = svg("rect", { x: x(a), y: height - bottom - tall, width: Math.max(1, x(b) - x(a) - 0.3), height: Math.max(0.5, tall), fill: color });
    const title = svg("title", {});
    title.textContent = `${f.ms(a)} to ${f.ms(b)}: ${f.count(n)}`;
    box.append(title);
    parts.push(box);
  });
  const q = d.quantiles_ms;
  let before = -100;
  for (const [label, at] of [["p50", q[3]], ["p95", q[5]], ["p99", q[6]]] as [string, number | null][]) {
    if (!f.isKnown(at)) continue;
    const px = x(at);
    parts.push(svg("line", { x1: px, x2: px, y1: top - 4, y2: height - bottom, "stroke-dasharray": "3 3", stroke: css("--soft") }));
    if (px - before > 34) { const t = svg("text", { x: px, y: 10, "text-anchor": "middle" }); t.textContent = label; parts.push(t); before = px; }
  }
  for (let e = Math.floor(low * 3); e <= high * 3; e++) {
    const ms = Math.pow(10, Math.floor(e / 3)) * [1, 2, 5][((e % 3) + 3) % 3]!;
    const px = x(ms);
    if (px < left - 0.5 || px > width - right + 0.5) continue;
    if (high - low > 2.4 && ((e % 3) + 3) % 3 !== 0) continue;
    const t = svg("text", { x: Math.min(Math.max(px, 22), width - 26), y: height - 8, "text-anchor": "middle" });
    t.textContent = f.ms(ms);
    parts.push(svg("line", { x1: px, x2: px, y1: height - bottom, y2: height - bottom + 4 }), t);
  }
  return svg("svg", { class: "hist", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${f.count(d.count)} durations, median ${f.ms(d.quantiles_ms[3])}, 99 % below ${f.ms(d.quantiles_ms[6])}` }, ...parts);
}

const pathOf = (c: Context, d: Histogram): string[] => (d.path ?? []).map((s) => siteName(c.run.sites, s));
const phaseOf = (c: Context, d: Histogram): string | null => {
  for (let i = (d.path?.length ?? 0) - 1; i >= 0; i--) { const p = c.run.sites[d.path![i]!]?.[1]; if (p) return p; }
  return null;
};

function figure(c: Context, d: Histogram, wide = false): HTMLElement {
  const path = pathOf(c, d);
  const title = d.path === null ? "One step" : (path[path.length - 1] ?? "?");
  const q = d.quantiles_ms;
  return h("figure", { class: "panel" },
    h("figcaption", null, name(title), path.length > 1 ? name(path.slice(0, -1).join(" › "), "path") : null,
      h("p", { class: "small" }, `${f.count(d.count)} times · mean ${f.ms(d.mean_ms)} · median ${f.ms(q[3])} · p95 ${f.ms(q[5])} · p99 ${f.ms(q[6])} · longest ${f.ms(q[7])}`)),
    histogram(d, d.path === null ? css("--accent") : phaseColor(phaseOf(c, d)), ...(wide ? [1040, 230] : [])));
}

export const distributions: View = {
  id: "distributions", title: "Distributions", group: "Time",
  has: ({ run }) => run.distributions.length > 0,
  render(into, c) {
    const all = c.run.distributions;
    into.append(h("p", { class: "lead" }, "How long each took, on a logarithmic axis; counted over every call, not sampled. Two humps are two kinds of call; a long tail is what your p99 feels."));
    if (all.length === 0) { into.append(empty("No zones and no steps were recorded.")); return; }
    const step = all.find((d) => d.path === null);
    if (step) into.append(section("Steps", null, figure(c, step, true)));
    const shown = all.filter((d) => d.path !== null && d.count > 1).slice(0, 12);
    if (shown.length) into.append(section("Operations that took longest", null, h("div", { class: "grid2" }, shown.map((d) => figure(c, d)))));
    const spread = all.filter((d) => d.path !== null && d.count >= 20 && f.isKnown(d.quantiles_ms[3]) && f.isKnown(d.quantiles_ms[6]));
    const ratio = (d: Histogram): number => (d.quantiles_ms[6] as number) / Math.max(1e-9, d.quantiles_ms[3] as number);
    if (spread.length) into.append(section("Least steady", "By p99 over median: where single calls take far longer than usual.", table([...spread].sort((a, b) => ratio(b) - ratio(a)), [
      { title: "Operation", cell: (d) => name(pathOf(c, d).join(" › ")) },
      { title: "Calls", right: true, cell: (d) => f.count(d.count), sort: (d) => d.count },
      { title: "Median", right: true, cell: (d) => f.ms(d.quantiles_ms[3]), sort: (d) => d.quantiles_ms[3] },
      { title: "p99", right: true, cell: (d) => f.ms(d.quantiles_ms[6]), sort: (d) => d.quantiles_ms[6] },
      { title: "p99 / median", right: true, cell: (d) => `${f.digits(ratio(d))}×`, sort: ratio },
    ], { limit: 15 })));
  },
};
