// timeline.ts: the run from left to right, lane by lane, as deep as it was kept.
//
// Each lane has a band of phases for all of the run and, below, zones as boxes where
// they were kept: everywhere in a short run, around the slowest and some typical steps
// in a long one. A frame costs pixels, not events.
import { fitted, plain, Surface, Tip } from "../canvas";
import { h } from "../dom";
import * as f from "../format";
import { firstFrom, nextSeen, rows, type Row } from "../lanes";
import { css, frameColor, phaseColor, phaseOrder } from "../palette";
import { empty, section, siteName, table, type Context, type View } from "../view";
import type { Lane, SeenStep } from "../types";
import { phaseLegend } from "./memory";

const RULER = 58, BAND = 18, ROW = 16, GAP = 9, LABEL = 14, MOST_ROWS = 12;
const FACE = "11px system-ui, sans-serif";
const MONO = '11px ui-monospace, "SF Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace';

// Labels stand left of the lanes; on a phone they have less room.
let GUTTER = 148;

interface Place { lane: number; top: number; height: number; rows: Row[] }

function ticks(from: number, to: number, most: number): number[] {
  const rough = (to - from) / Math.max(1, most);
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough) ?? power * 10;
  const list: number[] = [];
  for (let t = Math.ceil(from / step) * step; t <= to && list.length < 50; t += step) list.push(t);
  return list;
}

export class TimelineView {
  readonly element: HTMLElement;
  readonly surface: Surface;
  private tip = new Tip();
  private box: HTMLElement;
  private spacer = h("div");
  private places: Place[] = [];
  private total = 0;
  private whole: number;
  from = 0;
  to: number;
  private lanes: Lane[];
  private zones: Row[][];
  private colors = new Map<string, string>();
  private siteColor: (string | undefined)[] = [];
  private where = h("span", { class: "where", "aria-live": "polite" });
  private pointers = new Map<number, { x: number; y: number }>();
  private moved = false;

  constructor(private context: Context, private dark = document.documentElement.dataset.theme) {
    const t = context.run.timeline;
    this.whole = t.duration_s || 1;
    this.to = this.whole;
    this.lanes = t.lanes;
    this.zones = rows(t, context.run.sites);
    this.surface = new Surface((s) => this.draw(s), "Timeline; plus and minus zoom, arrows move, 0 shows all");
    const c = this.surface.canvas;
    this.box = h("div", { class: "timeline-box", tabindex: -1 }, c, this.spacer);
    this.element = h("div", null, h("div", { class: "stage" }, this.box));
    this.layout();
    this.box.addEventListener("scroll", () => this.surface.later());
    c.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    c.addEventListener("pointerdown", (e) => this.down(e));
    c.addEventListener("pointermove", (e) => this.move(e));
    c.addEventListener("pointerup", (e) => this.up(e));
    c.addEventListener("pointercancel", (e) => this.up(e));
    c.addEventListener("pointerleave", () => this.tip.hide());
    c.addEventListener("dblclick", (e) => { const [x] = this.surface.at(e); this.zoom(0.3, this.time(x)); });
    c.addEventListener("keydown", (e) => this.key(e));
  }

  private layout(): void {
    let y = RULER;
    this.places = this.lanes.map((_, lane) => {
      const kept = this.zones[lane]!.slice(0, MOST_ROWS);
      const height = LABEL + BAND + kept.length * ROW + GAP;
      const p = { lane, top: y, height, rows: kept };
      y += height;
      return p;
    });
    this.total = y + 6;
    const shown = Math.min(this.total, Math.max(220, Math.min(innerHeight * 0.66, 700)));
    this.surface.canvas.style.height = `${shown}px`;
    this.spacer.style.height = `${Math.max(0, this.total - shown)}px`;
  }

  private time(x: number): number { return this.from + ((x - GUTTER) / Math.max(1, this.surface.width - GUTTER)) * (this.to - this.from); }
  private x(time: number): number { return GUTTER + ((time - this.from) / (this.to - this.from)) * (this.surface.width - GUTTER); }

  view(from: number, to: number): void {
    const least = 2e-7;
    let wide = Math.min(this.whole, Math.max(least, to - from));
    if (!Number.isFinite(wide)) wide = this.whole;
    this.from = Math.max(0, Math.min(this.whole - wide, from));
    this.to = this.from + wide;
    this.where.textContent = `${f.seconds(this.from)} to ${f.seconds(this.to)}  (${f.seconds(wide)})`;
    this.surface.later();
  }

  zoom(factor: number, around = (this.from + this.to) / 2): void { this.view(around - (around - this.from) * factor, around + (this.to - around) * factor); }
  all(): void { this.view(0, this.whole); }

  // ---- Drawing -------------------------------------------------------------------

  private color(phase: string): string {
    let c = this.colors.get(phase);
    if (!c) { c = phaseColor(phase); this.colors.set(phase, c); }
    return c;
  }

  private draw(s: Surface): void {
    const pen = s.pen;
    GUTTER = s.width < 620 ? 96 : 148;
    if (this.dark !== document.documentElement.dataset.theme) { this.dark = document.documentElement.dataset.theme; this.colors.clear(); this.siteColor = []; }
    const scroll = this.box.scrollTop;
    pen.fillStyle = css("--panel");
    pen.fillRect(0, 0, s.width, s.height);
    pen.textBaseline = "middle";
    pen.direction = "ltr";
    const ink = css("--text"), soft = css("--soft"), sunk = css("--sunk");
    this.drawGrid(pen, s);
    for (const p of this.places) {
      const top = p.top - scroll;
      if (top + p.height < RULER || top > s.height) continue;
      this.drawBand(pen, p, top + LABEL, sunk);
      p.rows.forEach((row, d) => this.drawRow(pen, row, top + LABEL + BAND + 1 + d * ROW, ink));
    }
    pen.fillStyle = css("--panel");
    pen.fillRect(0, RULER, GUTTER - 4, s.height);
    for (const p of this.places) {
      const top = p.top - scroll;
      if (top + p.height < RULER || top > s.height) continue;
      this.drawLabel(pen, p, top, ink, soft);
    }
    this.drawRuler(pen, s, soft);
  }

  private role(lane: Lane): string { return plain(lane.role || (this.context.run.report.processes.find((p) => p.pid === lane.pid)?.role ?? "process")); }

  private drawLabel(pen: CanvasRenderingContext2D, p: Place, top: number, ink: string, soft: string): void {
    const lane = this.lanes[p.lane]!;
    pen.textAlign = "left";
    pen.font = `600 ${FACE}`;
    pen.fillStyle = ink;
    const process = `${this.role(lane)} ${lane.pid}`;
    const who = lane.main ? this.role(lane) : plain(lane.name) || `thread ${lane.tid}`;
    pen.fillText(fitted(who, GUTTER - 18, 6.6), 10, top + LABEL + BAND / 2);
    if (p.rows.length > 0) {
      pen.font = FACE;
      pen.fillStyle = soft;
      pen.fillText(fitted(lane.main ? `process ${lane.pid}` : `of ${process}`, GUTTER - 18, 6), 10, top + LABEL + BAND + ROW / 2 + 1);
    }
  }

  // Buckets become columns of pixels; a column is the mean of its buckets.
  private drawBand(pen: CanvasRenderingContext2D, p: Place, top: number, sunk: string): void {
    const lane = this.lanes[p.lane]!;
    const n = lane.buckets;
    pen.fillStyle = sunk;
    pen.fillRect(Math.max(GUTTER, this.x(0)), top, Math.min(this.surface.width, this.x(this.whole)) - Math.max(GUTTER, this.x(0)), BAND);
    const first = Math.max(0, Math.floor((this.from / this.whole) * n)), last = Math.min(n, Math.ceil((this.to / this.whole) * n));
    const step = Math.max(1, (last - first) / (this.surface.width - GUTTER));
    const phases = phaseOrder.filter((name) => lane.busy[name]);
    for (let b = first; b < last; b += step) {
      const low = Math.floor(b), high = Math.max(low + 1, Math.min(n, Math.floor(b + step)));
      const left = this.x((low / n) * this.whole), right = this.x((high / n) * this.whole);
      let y = top + BAND;
      for (const phase of phases) {
        const busy = lane.busy[phase]!;
        let sum = 0;
        for (let i = low; i < high; i++) sum += busy[i]!;
        const tall = (sum / (high - low) / 100) * BAND;
        if (tall < 0.2) continue;
        pen.fillStyle = this.color(phase);
        pen.fillRect(Math.max(GUTTER, left), y - tall, Math.max(0.5, right - Math.max(GUTTER, left) + 0.3), tall);
        y -= tall;
      }
    }
  }

  private zoneColor(row: Row, i: number): string {
    const phase = row.phase[i]!;
    if (phase) return this.color(phaseOrder[phase - 1]!);
    const site = row.site[i]!;
    return (this.siteColor[site] ??= frameColor(siteName(this.context.run.sites, site)));
  }

  // Zones narrower than a pixel become runs of one colour; the others are boxes.
  private drawRow(pen: CanvasRenderingContext2D, row: Row, top: number, ink: string): void {
    const { begin, end } = row;
    const width = this.surface.width;
    const scale = (width - GUTTER) / (this.to - this.from);
    let i = Math.max(0, firstFrom(begin, this.from) - 1);
    let run = "", runFrom = 0, runTo = -1;
    const flush = (): void => {
      if (runTo > runFrom) { pen.fillStyle = run; pen.fillRect(runFrom, top, runTo - runFrom, ROW - 2); }
      runTo = -1;
    };
    while (i < begin.length) {
      const b = begin[i]!;
      if (b > this.to) break;
      const left = Math.max(GUTTER, GUTTER + (b - this.from) * scale), right = Math.min(width, GUTTER + (end[i]! - this.from) * scale);
      const wide = right - left;
      if (right < GUTTER) { i++; continue; }
      const color = this.zoneColor(row, i);
      if (wide >= 3) {
        flush();
        this.drawZone(pen, row, i, left, top, wide, color, ink);
        i++;
        continue;
      }
      if (color !== run || left > runTo + 0.6) { flush(); run = color; runFrom = left; }
      runTo = Math.max(left + 0.8, right);
      i = wide < 1 ? nextSeen(row, i, b + 1 / scale) : i + 1;
    }
    flush();
  }

  private drawZone(pen: CanvasRenderingContext2D, row: Row, i: number, left: number, top: number, wide: number, color: string, ink: string): void {
    pen.fillStyle = color;
    pen.fillRect(left, top, wide - 0.7, ROW - 2);
    if (wide <= 34) return;
    const text = fitted(plain(siteName(this.context.run.sites, row.site[i]!)), wide - 6, 6.65);
    if (!text) return;
    pen.font = MONO;
    pen.textAlign = "left";
    pen.fillStyle = this.letter(color, ink);
    pen.fillText(text, left + 3, top + ROW / 2 - 0.5);
  }

  private letter(fill: string, ink: string): string {
    if (!fill.startsWith("#")) return ink;
    const n = parseInt(fill.slice(1), 16);
    return 0.299 * (n >> 16) + 0.587 * ((n >> 8) & 255) + 0.114 * (n & 255) > 150 ? "#15171c" : "#ffffff";
  }

  // Deep inside a long run all ticks would read alike: there they count from the edge.
  private tickText(t: number): string {
    const wide = this.to - this.from;
    return wide < this.from / 500 ? `+${f.seconds(t - this.from)}` : f.seconds(t);
  }

  private drawGrid(pen: CanvasRenderingContext2D, s: Surface): void {
    pen.strokeStyle = css("--line");
    pen.lineWidth = 1;
    for (const t of ticks(this.from, this.to, (s.width - GUTTER) / 90)) {
      const x = Math.round(this.x(t)) + 0.5;
      if (x < GUTTER) continue;
      pen.beginPath();
      pen.moveTo(x, 18);
      pen.lineTo(x, s.height);
      pen.stroke();
    }
  }

  private drawRuler(pen: CanvasRenderingContext2D, s: Surface, soft: string): void {
    pen.fillStyle = css("--panel");
    pen.fillRect(0, 0, s.width, RULER - 2);
    pen.font = FACE;
    pen.textAlign = "center";
    pen.fillStyle = soft;
    for (const t of ticks(this.from, this.to, (s.width - GUTTER) / 90)) {
      const x = this.x(t);
      if (x > GUTTER + 18 && x < s.width - 18) pen.fillText(this.tickText(t), x, 9);
    }
    this.drawSteps(pen, soft);
    pen.fillStyle = css("--line");
    pen.fillRect(0, RULER - 2, s.width, 1);
  }

  // How long steps took, along the top.
  private drawSteps(pen: CanvasRenderingContext2D, soft: string): void {
    const t = this.context.run.timeline.steps;
    pen.textAlign = "left";
    pen.fillStyle = soft;
    if (t.points.length === 0) return;
    pen.fillText("step time", 10, 38);
    let most = 0;
    for (const p of t.points) most = Math.max(most, p[2] ?? p[1]!);
    const base = RULER - 6, tall = RULER - 26;
    pen.fillStyle = css("--accent");
    let pixel = -1, tallest = 0; // of steps that share a pixel the longest is drawn
    const flush = (): void => { if (tallest > 0) pen.fillRect(pixel, base - tallest, 1, tallest); tallest = 0; };
    for (const p of t.points) {
      const right = this.x(p[0]!), left = Math.max(GUTTER, this.x(p[0]! - (p[1]! * t.per_point) / 1e3));
      if (right < GUTTER || left > this.surface.width) continue;
      const high = ((p[2] ?? p[1]!) / Math.max(most, 1e-9)) * tall;
      if (right - left > 2) { flush(); pen.fillRect(left, base - high, right - left - (right - left > 3 ? 1 : 0), high); continue; }
      if (Math.floor(left) !== pixel) { flush(); pixel = Math.floor(left); }
      tallest = Math.max(tallest, high);
    }
    flush();
  }

  // ---- Asking --------------------------------------------------------------------

  private hover(e: PointerEvent): void {
    const [x, py] = this.surface.at(e);
    const y = py + this.box.scrollTop;
    const time = this.time(x);
    if (x < GUTTER) { this.tip.hide(); return; }
    if (py < RULER) { this.hoverStep(e, time); return; }
    const p = this.places.find((q) => y >= q.top && y < q.top + q.height);
    if (!p) { this.tip.hide(); return; }
    const into = y - p.top - LABEL;
    if (into < BAND) { this.hoverBand(e, this.lanes[p.lane]!, time); return; }
    const row = p.rows[Math.floor((into - BAND) / ROW)];
    const slack = ((this.to - this.from) / (this.surface.width - GUTTER)) * 2;
    const i = row ? firstFrom(row.begin, time + slack) - 1 : -1;
    if (!row || i < 0 || row.end[i]! + slack < time) { this.tip.hide(); return; }
    const site = this.context.run.sites[row.site[i]!];
    this.tip.show(e, plain(site?.[0] ?? "?"), `${f.seconds(row.end[i]! - row.begin[i]!)}, from ${f.seconds(row.begin[i]!)}`, site?.[2] ? `${site[2]}:${site[3] ?? "?"}` : null, row.phase[i] ? f.words(phaseOrder[row.phase[i]! - 1]!) : null);
  }

  private hoverStep(e: PointerEvent, time: number): void {
    const t = this.context.run.timeline.steps;
    const i = t.points.findIndex((p) => p[0]! >= time);
    const p = t.points[i];
    if (!p) { this.tip.hide(); return; }
    const first = i * t.per_point + 1;
    this.tip.show(e, t.per_point > 1 ? `steps ${f.count(first)} to ${f.count(first + t.per_point - 1)}` : `step ${f.count(first)}`, t.per_point > 1 ? `mean ${f.ms(p[1])}, longest ${f.ms(p[2])}` : f.ms(p[1]));
  }

  private hoverBand(e: PointerEvent, lane: Lane, time: number): void {
    const b = Math.floor((time / this.whole) * lane.buckets);
    const busy = phaseOrder.filter((p) => (lane.busy[p]?.[b] ?? 0) > 0).map((p) => `${f.words(p)} ${lane.busy[p]![b]} %`);
    this.tip.show(e, `${f.seconds((b / lane.buckets) * this.whole)}, a bucket of ${f.seconds(this.whole / lane.buckets)}`, ...(busy.length ? busy : ["outside of zones"]));
  }

  // ---- Moving --------------------------------------------------------------------

  private wheel(e: WheelEvent): void {
    const [x] = this.surface.at(e);
    if (e.ctrlKey || e.metaKey) { e.preventDefault(); this.zoom(Math.exp(e.deltaY * 0.0025), this.time(x)); return; }
    if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      e.preventDefault();
      const by = ((e.deltaX || e.deltaY) / (this.surface.width - GUTTER)) * (this.to - this.from);
      this.view(this.from + by, this.to + by);
    }
  }

  private down(e: PointerEvent): void {
    this.surface.canvas.setPointerCapture(e.pointerId);
    this.pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
    this.moved = false;
    this.surface.canvas.focus({ preventScroll: true });
  }

  private move(e: PointerEvent): void {
    const before = this.pointers.get(e.pointerId);
    if (!before) { this.hover(e); return; }
    const per = (this.to - this.from) / (this.surface.width - GUTTER);
    if (this.pointers.size === 2) {
      const [a, b] = [...this.pointers.entries()].map(([id, p]) => (id === e.pointerId ? { now: e.clientX, was: before.x } : { now: p.x, was: p.x })) as [{ now: number; was: number }, { now: number; was: number }];
      const was = Math.max(20, Math.abs(a.was - b.was)), now = Math.max(20, Math.abs(a.now - b.now));
      const box = this.surface.canvas.getBoundingClientRect();
      this.zoom(was / now, this.time((a.now + b.now) / 2 - box.left));
    } else {
      const by = (before.x - e.clientX) * per;
      if (Math.abs(before.x - e.clientX) > 2) this.moved = true;
      if (this.moved || this.pointers.size === 1) this.view(this.from + by, this.to + by);
    }
    this.pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
    this.tip.hide();
  }

  private up(e: PointerEvent): void { this.pointers.delete(e.pointerId); }

  private key(e: KeyboardEvent): void {
    const wide = this.to - this.from;
    const moves: Record<string, () => void> = {
      "+": () => this.zoom(0.6), "=": () => this.zoom(0.6), "-": () => this.zoom(1 / 0.6), "0": () => this.all(),
      ArrowLeft: () => this.view(this.from - wide * 0.15, this.to - wide * 0.15), ArrowRight: () => this.view(this.from + wide * 0.15, this.to + wide * 0.15),
      ArrowUp: () => { this.box.scrollTop -= 60; }, ArrowDown: () => { this.box.scrollTop += 60; },
      Home: () => this.view(0, wide), End: () => this.view(this.whole - wide, this.whole),
    };
    const act = moves[e.key];
    if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
    act();
    e.preventDefault();
  }

  controls(): HTMLElement {
    const t = this.context.run.timeline;
    const button = (text: string, title: string, act: () => void): HTMLElement => h("button", { class: "tool", type: "button", title, onclick: act }, text);
    const go = (s: SeenStep): void => { const margin = (s[2] - s[1]) * 0.1; this.view(s[1] - margin, s[2] + margin); };
    const steps: [string, SeenStep][] = [...t.slowest.map((s, i): [string, SeenStep] => [`slowest ${i + 1}: step ${f.count(s[0])}, ${f.seconds(s[2] - s[1])}`, s]), ...t.typical.map((s): [string, SeenStep] => [`typical: step ${f.count(s[0])}, ${f.seconds(s[2] - s[1])}`, s])];
    const pick = steps.length ? h("select", { "aria-label": "Go to a step", onchange: (e: Event) => { const s = steps[Number((e.target as HTMLSelectElement).value)]; if (s) go(s[1]); else this.all(); } },
      h("option", { value: "" }, "Go to a step …"), steps.map(([text], i) => h("option", { value: i }, text))) : null;
    this.view(this.from, this.to);
    return h("div", { class: "controls" }, button("−", "Zoom out (−)", () => this.zoom(1 / 0.5)), button("+", "Zoom in (+)", () => this.zoom(0.5)), button("All", "Whole run (0)", () => this.all()), pick, h("span", { class: "grow" }), this.where);
  }

  destroy(): void { this.surface.destroy(); this.tip.destroy(); }
}

export const timeline: View = {
  id: "timeline", title: "Timeline", group: "Time",
  has: ({ run }) => run.timeline.lanes.length > 0,
  render(into, c) {
    const t = c.run.timeline;
    if (t.lanes.length === 0) { into.append(empty("No zones were recorded, so there is nothing to put on a timeline.")); return undefined; }
    const view = new TimelineView(c);
    const used = phaseOrder.filter((p) => t.lanes.some((l) => l.busy[p]));
    const whole = t.windows.some((w) => w.kind === "whole");
    const left = t.windows.find((w) => w.kind === "longest")?.left_out ?? 0;
    into.append(h("p", { class: "note" }, whole ? `All ${f.count(t.zones)} zones. ` : `Bands show all ${f.count(t.zones)} zones; boxes are the longest ones, and everything around the slowest and some typical steps. `,
      "Drag or ", h("kbd", null, "←"), " ", h("kbd", null, "→"), " to move, ", h("kbd", null, "Ctrl"), " + wheel or ", h("kbd", null, "+"), " ", h("kbd", null, "−"), " to zoom, ", h("kbd", null, "0"), " for all."),
      view.controls(), view.element, phaseLegend(used));
    if (t.lanes_left_out) into.append(h("p", { class: "small" }, `${f.count(t.lanes_left_out)} more threads are not shown.`));
    if (t.lanes.some((l) => l.partial)) into.append(h("p", { class: "small" }, "Older events of some threads were recycled (--max-trace): their lanes begin late. Statistics still count them."));
    if (t.slowest.length) into.append(section("Slowest steps", whole || left === 0 ? null : `Away from them ${f.count(left)} shorter zones are not drawn as boxes.`, table(t.slowest, [
      { title: "Step", cell: (s) => f.count(s[0]), sort: (s) => s[0] },
      { title: "Began", right: true, cell: (s) => f.seconds(s[1]), sort: (s) => s[1] },
      { title: "Took", right: true, cell: (s) => f.seconds(s[2] - s[1]), sort: (s) => s[2] - s[1] },
      { title: "Against the median", right: true, cell: (s) => (f.isKnown(c.run.report.summary.step_ms.p50) ? `${f.digits(((s[2] - s[1]) * 1e3) / c.run.report.summary.step_ms.p50)}×` : f.MISSING) },
      { title: "", right: true, cell: (s) => h("button", { class: "tool", type: "button", onclick: () => { const m = (s[2] - s[1]) * 0.1; view.view(s[1] - m, s[2] + m); view.element.scrollIntoView({ block: "center" }); } }, "Show") },
    ])));
    (into as HTMLElement & { timelineView?: TimelineView }).timelineView = view;
    return () => view.destroy();
  },
};
