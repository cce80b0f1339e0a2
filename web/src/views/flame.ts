// flame.ts: the flame graph: whose calls took the time or the memory.
//
// Outermost calls are on top. Click or Enter zooms, Escape goes back, arrows walk; the
// table below says the same in words.
import { build, heaviest, type Grouping, type Node } from "../calltree";
import { fitted, plain, Surface, Tip } from "../canvas";
import { bar, h, name, place } from "../dom";
import * as f from "../format";
import { changeColor, css, frameColor, phaseColor } from "../palette";
import { empty, section, table, type Context, type View } from "../view";
import type { FlameTree, Run } from "../types";

const ROW = 21;
const FACE = '12px ui-monospace, "SF Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace';
const PER_CHAR = 7.25;

class Flame {
  readonly element: HTMLElement;
  private surface: Surface;
  private tip = new Tip();
  private nodes: Node[] = [];
  private focus = 0;
  private cursor = 0;
  private search = "";
  private matches = new Set<number>();
  private diff = false;
  private unit = "s";
  private crumbs = h("div", { class: "crumbs" });
  private said = h("div", { class: "crumbs", "aria-live": "polite" });

  constructor(private changed: (nodes: Node[]) => void) {
    this.surface = new Surface((s) => this.draw(s), "Flame graph; arrow keys walk, Enter zooms, Escape goes back");
    const c = this.surface.canvas;
    c.style.cursor = "pointer";
    c.addEventListener("mousemove", (e) => this.hover(e));
    c.addEventListener("mouseleave", () => this.tip.hide());
    c.addEventListener("click", (e) => { const i = this.find(...this.surface.at(e)); if (i >= 0) { this.cursor = i; this.zoom(i === this.focus ? Math.max(0, this.nodes[i]!.parent) : i); } });
    c.addEventListener("keydown", (e) => this.key(e));
    this.element = h("div", null, this.crumbs, h("div", { class: "stage flame-box" }, c), this.said);
  }

  show(nodes: Node[], unit: string, diff: boolean): void {
    this.nodes = nodes;
    this.unit = unit;
    this.diff = diff;
    this.focus = 0;
    this.cursor = 0;
    this.find_matches();
    this.fit();
    this.changed(nodes);
  }

  private fit(): void {
    let deepest = 0;
    const focus = this.nodes[this.focus];
    if (focus) for (let i = this.focus; i < focus.end; i++) deepest = Math.max(deepest, this.nodes[i]!.depth);
    this.surface.setHeight(Math.max(3, deepest + 1) * ROW + 8);
    this.path();
    this.surface.later();
  }

  find_matches(text = this.search): void {
    this.search = text;
    this.matches.clear();
    if (text) this.nodes.forEach((n, i) => { if (n.name.toLowerCase().includes(text)) this.matches.add(i); });
    // What matches inside what matches counts once.
    let total = 0;
    for (const i of this.matches) {
      let inside = false;
      for (let p = this.nodes[i]!.parent; p >= 0; p = this.nodes[p]!.parent) if (this.matches.has(p)) { inside = true; break; }
      if (!inside) total += this.nodes[i]!.total;
    }
    const all = this.nodes[0]?.total ?? 0;
    this.said.textContent = text ? `${this.matches.size} match${this.matches.size === 1 ? "" : "es"}, ${all > 0 ? f.percent(total / all) : "–"} of the whole` : "";
    this.surface.later();
  }

  private amount(x: number): string { return this.unit === "s" ? f.seconds(x / 1e9) : f.bytes(x); }

  private path(): void {
    const chain: number[] = [];
    for (let i = this.focus; i >= 0; i = this.nodes[i]?.parent ?? -1) chain.unshift(i);
    this.crumbs.replaceChildren(...chain.flatMap((i, at) => [
      at ? document.createTextNode(" › ") : document.createTextNode(""),
      h("button", { type: "button", onclick: () => this.zoom(i) }, plain((this.nodes[i]?.name ?? "").slice(0, 80))),
    ]), document.createTextNode(`   ${this.amount(this.nodes[this.focus]?.total ?? 0)}`));
  }

  private zoom(i: number): void { this.focus = i; this.fit(); }

  private span(n: Node): [number, number] {
    const at = this.nodes[this.focus]!;
    const wide = Math.max(at.x1 - at.x0, 1e-12);
    return [((n.x0 - at.x0) / wide) * this.surface.width, ((n.x1 - at.x0) / wide) * this.surface.width];
  }

  private color(n: Node, i: number): string {
    if (this.search && !this.matches.has(i)) return css("--sunk");
    if (this.diff) { const most = Math.max(n.total, n.before, 1e-12); return changeColor((n.total - n.before) / most); }
    if (n.group || i === 0) return css("--strong");
    if (this.unit === "s" && n.phase) return phaseColor(n.phase);
    return n.name === "(smaller)" ? css("--line") : frameColor(n.name, this.unit !== "s");
  }

  private box(n: Node, i: number, left: number, right: number, faded: boolean): void {
    const pen = this.surface.pen;
    const l = Math.max(0, left), r = Math.min(this.surface.width, right);
    const y = n.depth * ROW + 4;
    pen.globalAlpha = faded ? 0.45 : 1;
    pen.fillStyle = this.color(n, i);
    pen.fillRect(l, y, Math.max(0.6, r - l - 0.8), ROW - 1.5);
    if (i === this.cursor && document.activeElement === this.surface.canvas) { pen.strokeStyle = css("--text"); pen.lineWidth = 2; pen.strokeRect(l + 1, y + 1, Math.max(1, r - l - 3), ROW - 4); }
    if (r - l > 26) {
      const text = fitted(plain(n.name), r - l - 8, PER_CHAR);
      if (text) {
        const quiet = this.search !== "" && !this.matches.has(i);
        pen.fillStyle = quiet ? css("--faint") : this.ink(n, i);
        pen.fillText(text, l + 4, y + ROW / 2);
      }
    }
    pen.globalAlpha = 1;
  }

  // Dark letters on light boxes and the other way round.
  private ink(n: Node, i: number): string {
    if (this.diff || n.group || i === 0 || !(this.unit === "s" && n.phase)) return css("--text");
    const c = phaseColor(n.phase);
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(c.slice(at, at + 2), 16)) as [number, number, number];
    return 0.299 * r + 0.587 * g + 0.114 * b > 150 ? "#15171c" : "#ffffff";
  }

  private draw(s: Surface): void {
    const pen = s.pen;
    pen.fillStyle = css("--panel");
    pen.fillRect(0, 0, s.width, s.height);
    pen.font = FACE;
    pen.textBaseline = "middle";
    pen.textAlign = "left";
    pen.direction = "ltr";
    const at = this.nodes[this.focus];
    if (!at) return;
    for (let p = at.parent; p >= 0; p = this.nodes[p]!.parent) this.box(this.nodes[p]!, p, 0, s.width, true);
    for (let i = this.focus; i < at.end;) {
      const n = this.nodes[i]!;
      const [l, r] = this.span(n);
      if (r - l < 0.7) { i = n.end; continue; } // with all that is in it
      this.box(n, i, l, r, false);
      i++;
    }
  }

  private find(x: number, y: number): number {
    const depth = Math.floor((y - 4) / ROW);
    const at = this.nodes[this.focus];
    if (!at || depth < 0) return -1;
    if (depth < at.depth) { let p = this.focus; while (p >= 0 && this.nodes[p]!.depth > depth) p = this.nodes[p]!.parent; return p; }
    for (let i = this.focus; i < at.end;) {
      const n = this.nodes[i]!;
      const [l, r] = this.span(n);
      if (x < l || x >= r) { i = n.end; continue; }
      if (n.depth === depth) return i;
      i++;
    }
    return -1;
  }

  private words(i: number): string[] {
    const n = this.nodes[i]!;
    const all = this.nodes[0]!.total || 1;
    const lines = [plain(n.name), `${this.amount(n.total)}, ${f.percent(n.total / all)} of all; ${this.amount(n.self)} its own`];
    if (this.diff) lines.push(n.before > 0 ? `before ${this.amount(n.before)}: ${f.difference(n.before, n.total)}` : "not in the other run");
    if (n.file) lines.push(n.line ? `${n.file}:${n.line}` : n.file);
    if (n.phase && !n.group) lines.push(f.words(n.phase));
    return lines;
  }

  private hover(e: MouseEvent): void {
    const i = this.find(...this.surface.at(e));
    if (i < 0) { this.tip.hide(); return; }
    this.tip.show(e, ...this.words(i));
  }

  private key(e: KeyboardEvent): void {
    const n = this.nodes[this.cursor];
    if (!n) return;
    const siblings = (): number[] => { const list: number[] = []; if (n.parent < 0) return list; for (let i = n.parent + 1; i < this.nodes[n.parent]!.end; i = this.nodes[i]!.end) list.push(i); return list; };
    let next = this.cursor;
    if (e.key === "ArrowDown" && n.end > this.cursor + 1) next = this.cursor + 1;
    else if (e.key === "ArrowUp" && n.parent >= 0) next = n.parent;
    else if (e.key === "ArrowRight" || e.key === "ArrowLeft") { const s = siblings(); const at = s.indexOf(this.cursor); next = s[at + (e.key === "ArrowRight" ? 1 : -1)] ?? next; }
    else if (e.key === "Enter" || e.key === " ") { this.zoom(this.cursor); e.preventDefault(); return; }
    else if (e.key === "Escape") { this.cursor = 0; this.zoom(0); return; }
    else return;
    e.preventDefault();
    this.cursor = next;
    this.said.textContent = this.words(next).join(" · ");
    this.surface.later();
  }

  destroy(): void { this.surface.destroy(); this.tip.destroy(); }
}

function controls(c: Context, refresh: (tree: FlameTree, g: Grouping, other: Run | null) => void, search: (text: string) => void): HTMLElement {
  let tree = c.run.flame[0]!;
  let grouping: Grouping = "all";
  let other: Run | null = null;
  const again = (): void => refresh(tree, grouping, other);
  const kinds = h("select", { "aria-label": "What to show", onchange: (e: Event) => { tree = c.run.flame[Number((e.target as HTMLSelectElement).value)] ?? tree; groups.hidden = tree.levels < 2; again(); } }, c.run.flame.map((t, i) => h("option", { value: i }, t.title)));
  const groups = h("select", { "aria-label": "Grouped by", onchange: (e: Event) => { grouping = (e.target as HTMLSelectElement).value as Grouping; again(); } }, h("option", { value: "all" }, "all together"), h("option", { value: "process" }, "by process"), h("option", { value: "thread" }, "by thread"));
  groups.hidden = tree.levels < 2;
  const others = c.doc.runs.filter((r) => r !== c.run);
  const against = others.length ? h("select", { "aria-label": "Compare with", onchange: (e: Event) => { const v = (e.target as HTMLSelectElement).value; other = v === "" ? null : (others[Number(v)] ?? null); again(); } },
    h("option", { value: "" }, "no comparison"), others.map((r, i) => h("option", { value: i }, `against ${(r.report.run.name ?? r.report.run.id).slice(0, 40)}`))) : null;
  const box = h("input", { type: "search", placeholder: "Search (/)", "aria-label": "Search frames", oninput: (e: Event) => search((e.target as HTMLInputElement).value.toLowerCase()) });
  return h("div", { class: "controls" }, kinds, groups, against, h("span", { class: "grow" }), box);
}

export const flame: View = {
  id: "flame", title: "Flame graph", group: "Time",
  has: ({ run }) => run.flame.length > 0,
  render(into, c) {
    if (c.run.flame.length === 0) { into.append(empty("Neither zones nor stacks nor allocations were recorded.")); return undefined; }
    const note = h("p", { class: "note" });
    const list = h("div");
    let unit = "s";
    const graph = new Flame((nodes) => {
      const top = heaviest(nodes);
      const all = nodes[0]?.total || 1;
      const show = (x: number): string => (unit === "s" ? f.seconds(x / 1e9) : f.bytes(x));
      const most = Math.max(...top.map((t) => t.self), 1e-12);
      list.replaceChildren(section("Heaviest by themselves", "Wherever they were called from.", table(top, [
        { title: "Function", cell: (t) => h("span", null, name(t.name), place(t.file, t.line)), sort: (t) => t.name },
        { title: "", wide: true, cell: (t) => bar(t.self / most, css("--accent"), show(t.self)) },
        { title: "Self", right: true, cell: (t) => show(t.self), sort: (t) => t.self },
        { title: "Share", right: true, cell: (t) => f.percent(t.self / all), sort: (t) => t.self },
        { title: "Total", right: true, cell: (t) => show(t.total), sort: (t) => t.total },
      ], { limit: 15 })));
    });
    const refresh = (tree: FlameTree, grouping: Grouping, other: Run | null): void => {
      unit = tree.unit;
      const theirs = other?.flame.find((t) => t.id === tree.id);
      const compared = other !== null && theirs !== undefined;
      note.textContent = `${tree.note}${other && !theirs ? " The other run has no such tree." : ""}${compared ? " Orange grew, blue shrank, per step where both have steps; widths are this run's." : ""}${tree.refused > 0 ? " Some paths found no room." : ""}`;
      graph.show(build(c.run, tree, grouping, compared ? { run: other, tree: theirs } : undefined), tree.unit, compared);
    };
    into.append(controls(c, refresh, (text) => graph.find_matches(text)), note, graph.element, list);
    refresh(c.run.flame[0]!, "all", null);
    return () => graph.destroy();
  },
};
