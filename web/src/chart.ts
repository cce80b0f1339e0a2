// chart.ts: lines and bars over uPlot, in the page's colours.
import uPlot from "uplot";
import { h } from "./dom";
import { css } from "./palette";

export interface Line { label: string; color: string; values: (number | null)[]; fill?: boolean; dash?: boolean; points?: boolean; bars?: boolean; width?: number }

export interface ChartOptions {
  height?: number;
  x: number[];
  lines: Line[];
  xLabel?: string;
  format: (value: number) => string;
  formatX?: (value: number) => string;
  legend?: boolean;
  zero?: boolean; // the axis begins at 0
  max?: number;
  sync?: string;
  onSelect?: (from: number, to: number) => void;
  under?: (u: uPlot) => void; // draws below the lines
  label: string; // for those who cannot see it
}

export function chart(o: ChartOptions): { element: HTMLElement; destroy: () => void } {
  const holder = h("div", { class: "chart", role: "img", "aria-label": o.label });
  const axis = { stroke: css("--soft"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1, size: 4 }, font: "11px system-ui, sans-serif" };
  const wide = (): number => Math.max(200, holder.clientWidth || holder.parentElement?.clientWidth || 640);
  let plot: uPlot | null = null;

  function make(): void {
    if (plot || !holder.isConnected) return;
    const options: uPlot.Options = {
      width: wide(),
      height: o.height ?? 220,
      padding: [10, 12, 0, 0],
      legend: { show: o.legend ?? o.lines.length > 1, live: true },
      cursor: { points: { size: 6 }, drag: { x: o.onSelect !== undefined, y: false, setScale: false }, sync: o.sync ? { key: o.sync } : undefined },
      scales: { x: { time: false }, y: { range: (_u, low, high) => {
        const bottom = o.zero === false ? low : Math.min(0, low ?? 0);
        const top = o.max ?? (high ?? 1);
        return [bottom, top > bottom ? top + (o.max === undefined ? (top - bottom) * 0.06 : 0) : bottom + 1];
      } } },
      axes: [
        { ...axis, values: (_u, v) => v.map((x) => (o.formatX ?? String)(x)), size: 32, label: o.xLabel, labelSize: o.xLabel ? 18 : 0, labelFont: "11px system-ui, sans-serif" },
        { ...axis, values: (_u, v) => v.map((x) => o.format(x)), size: 68 },
      ],
      series: [
        { label: o.xLabel ?? "time", value: (_u, x) => (x === null || x === undefined ? "–" : (o.formatX ?? String)(x)) },
        ...o.lines.map((line): uPlot.Series => ({
          label: line.label.length > 60 ? `${line.label.slice(0, 60)}…` : line.label,
          stroke: line.color,
          width: line.width ?? (line.bars ? 0 : 1.5),
          fill: line.bars ? line.color : line.fill ? `color-mix(in srgb, ${line.color} 16%, transparent)` : undefined,
          dash: line.dash ? [4, 4] : undefined,
          paths: line.bars ? uPlot.paths.bars!({ size: [1, Infinity], gap: 0 }) : undefined,
          points: { show: line.points ?? o.x.length < 3 },
          spanGaps: false,
          value: (_u, v) => (v === null || v === undefined ? "–" : o.format(v)),
        })),
      ],
      hooks: {
        drawClear: o.under ? [o.under] : [],
        setSelect: o.onSelect ? [(u) => {
          if (u.select.width < 4) return;
          o.onSelect!(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        }] : [],
      },
    };
    plot = new uPlot(options, [o.x, ...o.lines.map((l) => l.values)] as uPlot.AlignedData, holder);
  }

  const observer = new ResizeObserver(() => {
    make();
    if (plot && Math.abs(plot.width - wide()) > 1) plot.setSize({ width: wide(), height: o.height ?? 220 });
  });
  observer.observe(holder);
  return { element: holder, destroy: () => { observer.disconnect(); plot?.destroy(); plot = null; } };
}

// Several charts of one view, gone together.
export class Charts {
  private all: { destroy: () => void }[] = [];
  add(o: ChartOptions): HTMLElement {
    const made = chart(o);
    this.all.push(made);
    return made.element;
  }
  keep(what: { destroy: () => void }): void { this.all.push(what); }
  destroy(): void { for (const c of this.all) c.destroy(); this.all = []; }
}
