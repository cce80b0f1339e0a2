// processes.ts: who took part: processes as a tree, with what each of them used.
import { bar, h, name } from "../dom";
import * as f from "../format";
import { phaseColor } from "../palette";
import { anything, empty, section, table, type View } from "../view";
import type { Process } from "../types";

interface Row { p: Process; depth: number; command: string | null } // null: its parent's

function tree(all: Process[]): Row[] {
  const children = new Map<number, Process[]>();
  const pids = new Set(all.map((p) => p.pid));
  const roots: Process[] = [];
  for (const p of all) {
    if (p.ppid !== p.pid && pids.has(p.ppid)) children.set(p.ppid, [...(children.get(p.ppid) ?? []), p]);
    else roots.push(p);
  }
  const rows: Row[] = [];
  const seen = new Set<Process>();
  const said = (p: Process): string => p.command ?? p.exe ?? "";
  const walk = (p: Process, depth: number, parent: Process | null): void => {
    if (seen.has(p)) return; // damaged parents may go in circles
    seen.add(p);
    rows.push({ p, depth, command: parent && said(parent) === said(p) ? null : said(p) });
    for (const c of children.get(p.pid) ?? []) walk(c, depth + 1, p);
    if (seen.has(p)) children.delete(p.pid);
  };
  for (const p of roots) walk(p, 0, null);
  for (const p of all) walk(p, 0, null);
  return rows;
}

function lifetime(p: Process, duration: number): HTMLElement {
  const box = h("span", { class: "bar", role: "img", "aria-label": `from ${f.seconds(p.first_seen_s)} to ${f.seconds(p.last_seen_s)}` });
  if (f.isKnown(p.first_seen_s) && f.isKnown(p.last_seen_s) && duration > 0) {
    const fill = h("i");
    fill.style.marginLeft = `${Math.min(99, (p.first_seen_s / duration) * 100)}%`;
    fill.style.width = `${Math.max(1, ((p.last_seen_s - p.first_seen_s) / duration) * 100)}%`;
    fill.style.background = phaseColor(p.main ? "forward" : /worker/.test(p.role ?? "") ? "data_loading" : "other");
    box.append(fill);
  }
  return box;
}

function split(p: Process): HTMLElement | string {
  const phases = (p.phases ?? []).filter((x) => x.share > 0.001);
  if (phases.length === 0) return f.MISSING;
  const box = h("span", { class: "split", role: "img", "aria-label": phases.map((x) => `${f.words(x.phase)} ${f.percent(x.share)}`).join(", "), title: phases.map((x) => `${f.words(x.phase)} ${f.percent(x.share)}`).join("\n") });
  box.style.height = "12px";
  box.style.margin = "4px 0";
  box.style.minWidth = "90px";
  for (const x of phases) { const i = h("i"); i.style.flexGrow = String(x.share * 1000); i.style.background = phaseColor(x.phase); box.append(i); }
  return box;
}

const exit = (p: Process): string => (f.isKnown(p.exit_signal) ? `signal ${p.exit_signal}` : f.isKnown(p.exit_code) ? `exit ${p.exit_code}` : p.alive ? "running" : f.MISSING);

export const processes: View = {
  id: "processes", title: "Processes", group: "Resources",
  has: ({ run }) => run.report.processes.length > 0,
  render(into, { run }) {
    const r = run.report;
    if (r.processes.length === 0) { into.append(empty("No process was seen.")); return; }
    const duration = r.run.duration_s ?? run.timeline.duration_s;
    const most = Math.max(...r.processes.map((p) => p.cpu_s ?? 0), 1e-9);
    into.append(section("Everybody in the run", "Children stand below their parents; phases are of each one's main thread.", table(tree(r.processes), [
      { title: "Process", cell: ({ p, depth, command }) => { const s = h("span", null, h("b", null, `${p.role ?? "process"} ${p.pid}`), command ? name(command, "path") : null); s.style.display = "block"; s.style.marginLeft = `${Math.min(depth, 8) * 18}px`; return s; } },
      { title: "Life", cell: ({ p }) => lifetime(p, duration) },
      { title: "Phases", cell: ({ p }) => split(p) },
      { title: "CPU", cell: ({ p }) => (f.isKnown(p.cpu_s) ? bar(p.cpu_s / most, phaseColor("forward"), f.seconds(p.cpu_s)) : f.MISSING) },
      { title: "", right: true, cell: ({ p }) => f.seconds(p.cpu_s), sort: ({ p }) => p.cpu_s },
      { title: "Memory", right: true, cell: ({ p }) => f.mib(p.peak_rss_mb), sort: ({ p }) => p.peak_rss_mb, hint: "resident, at its highest" },
      { title: "Read", right: true, cell: ({ p }) => f.mib(p.read_mb), sort: ({ p }) => p.read_mb },
      { title: "Written", right: true, cell: ({ p }) => f.mib(p.written_mb), sort: ({ p }) => p.written_mb },
      { title: "Threads", right: true, cell: ({ p }) => f.count(p.threads) },
      { title: "End", right: true, cell: ({ p }) => exit(p) },
    ], { limit: 60 })));
    if (r.ranks.length > 0) into.append(section("Ranks", null, anything(r.ranks) as HTMLElement));
  },
};
