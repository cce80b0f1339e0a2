// calltree.ts: the trees behind the flame graph: grouped, merged, laid out.
import type { FlameTree, Run, Site } from "./types";

export type Grouping = "all" | "process" | "thread";

export interface Node {
  name: string;
  phase: string | null; // its own or that of the zone around it
  file: string | null;
  line: number;
  parent: number;
  self: number; // of the run that is shown
  total: number;
  before: number; // total in the run it is compared with
  depth: number;
  x0: number; // place among all, 0 … 1
  x1: number;
  end: number; // behind its last descendant: nodes stand in depth-first order
  group: boolean; // a process or a thread, no frame
}

interface Draft { name: string; phase: string | null; file: string | null; line: number; self: number; before: number; children: Map<string, Draft>; group: boolean }

const draft = (name: string, group = false): Draft => ({ name, phase: null, file: null, line: 0, self: 0, before: 0, children: new Map(), group });

function nameOf(sites: Site[], site: number): [string, string | null, string | null, number] {
  if (site < 0) return ["(smaller)", null, null, 0];
  const s = sites[site];
  return [s?.[0] ?? "?", s?.[1] ?? null, s?.[2] ?? null, s?.[3] ?? 0];
}

function child(of: Draft, name: string, file: string | null): Draft {
  const key = `${name}\u0000${file ?? ""}`;
  let found = of.children.get(key);
  if (!found) { found = draft(name); of.children.set(key, found); }
  return found;
}

// Processes have other numbers in every run: only what they do makes them comparable.
const withoutNumber = (name: string): string => name.replace(/ \d+$/, "");

function add(root: Draft, tree: FlameTree, sites: Site[], grouping: Grouping, scale: number, into: "self" | "before", anonymous: boolean): void {
  const count = tree.self.length;
  const place: (Draft | null)[] = new Array<Draft | null>(count).fill(null);
  const depth = new Int32Array(count);
  place[0] = root;
  for (let i = 1; i < count; i++) {
    const p = tree.parent[i]!;
    if (p >= i) continue; // damage
    depth[i] = depth[p]! + 1;
    const parent = place[p];
    if (!parent) continue;
    const [name, phase, file, line] = nameOf(sites, tree.site[i]!);
    const isProcess = tree.levels === 2 && depth[i] === 1, isThread = tree.levels === 2 && depth[i] === 2;
    if ((isProcess && grouping === "all") || (isThread && grouping !== "thread")) place[i] = parent;
    else {
      const shown = isProcess || isThread ? (anonymous ? withoutNumber(name) : name) : name;
      const node = child(parent, shown, isProcess || isThread ? null : file);
      node.group = isProcess || isThread;
      node.phase ??= phase;
      node.file = file;
      node.line = line;
      place[i] = node;
    }
    place[i]![into] += tree.self[i]! * scale;
  }
}

interface Sums { total: number; before: number }

// Depth-first, the heaviest first; deep trees must not need a deep stack of ours.
function flatten(root: Draft): Node[] {
  const sums = new Map<Draft, Sums>();
  const order: Draft[] = [];
  const stack = [root];
  while (stack.length) { const d = stack.pop()!; order.push(d); for (const c of d.children.values()) stack.push(c); }
  for (let i = order.length - 1; i >= 0; i--) {
    const d = order[i]!;
    const s = { total: d.self, before: d.before };
    for (const c of d.children.values()) { const t = sums.get(c)!; s.total += t.total; s.before += t.before; }
    sums.set(d, s);
  }
  const nodes: Node[] = [];
  const weight = (d: Draft): number => { const s = sums.get(d)!; return Math.max(s.total, 0) || s.before * 1e-9; };
  const visit: { d: Draft; parent: number; depth: number; x0: number; x1: number; phase: string | null }[] = [{ d: root, parent: -1, depth: 0, x0: 0, x1: 1, phase: null }];
  while (visit.length) {
    const { d, parent, depth, x0, x1, phase } = visit.pop()!;
    const s = sums.get(d)!;
    const at = nodes.length;
    const own = d.phase ?? phase;
    nodes.push({ name: d.name, phase: own, file: d.file, line: d.line, parent, self: d.self, total: s.total, before: s.before, depth, x0, x1, end: 0, group: d.group });
    const children = [...d.children.values()].filter((c) => weight(c) > 0).sort((a, b) => weight(b) - weight(a));
    const all = Math.max(weight(d), 1e-300);
    let x = x0;
    const next: typeof visit = [];
    for (const c of children) { const w = ((x1 - x0) * weight(c)) / all; next.push({ d: c, parent: at, depth: depth + 1, x0: x, x1: Math.min(x1, x + w), phase: own }); x += w; }
    for (let i = next.length - 1; i >= 0; i--) visit.push(next[i]!);
  }
  for (let i = nodes.length - 1; i >= 0; i--) {
    const n = nodes[i]!;
    if (n.end < i + 1) n.end = i + 1;
    if (n.parent >= 0 && nodes[n.parent]!.end < n.end) nodes[n.parent]!.end = n.end;
  }
  return nodes;
}

export function build(run: Run, tree: FlameTree, grouping: Grouping, other?: { run: Run; tree: FlameTree }): Node[] {
  const root = draft("all");
  const steps = run.report.summary.step_ms.count, otherSteps = other?.run.report.summary.step_ms.count ?? 0;
  const perStep = other !== undefined && steps > 0 && otherSteps > 0;
  add(root, tree, run.sites, grouping, perStep ? 1 / steps : 1, "self", other !== undefined);
  if (other) add(root, other.tree, other.run.sites, grouping, perStep ? 1 / otherSteps : 1, "before", true);
  return flatten(root);
}

// Where a function spends most, wherever it was called from.
export function heaviest(nodes: Node[], most = 40): { name: string; file: string | null; line: number; self: number; total: number }[] {
  const by = new Map<string, { name: string; file: string | null; line: number; self: number; total: number }>();
  nodes.forEach((n, i) => {
    if (i === 0 || n.group) return;
    const key = `${n.name}\u0000${n.file ?? ""}`;
    const e = by.get(key) ?? { name: n.name, file: n.file, line: n.line, self: 0, total: 0 };
    e.self += n.self;
    let again = false; // recursion counts once
    for (let p = n.parent; p > 0; p = nodes[p]!.parent) if (nodes[p]!.name === n.name && nodes[p]!.file === n.file) { again = true; break; }
    if (!again) e.total += n.total;
    by.set(key, e);
  });
  return [...by.values()].sort((a, b) => b.self - a.self).slice(0, most);
}
