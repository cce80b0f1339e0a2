// code.ts: functions and lines, from sampled stacks.
import { bar, h, name, place } from "../dom";
import * as f from "../format";
import { css } from "../palette";
import { empty, record, section, table, type View } from "../view";
import type { HotFunction, HotLine } from "../types";

const python = (x: { language?: string | null; file: string | null }): boolean => x.language === "python" || (!x.language && /\.py$/.test(x.file ?? ""));

function functions(title: string, note: string, rows: HotFunction[]): HTMLElement | null {
  const used = rows.filter((x) => (x.self_s ?? 0) > 0 || (x.main_self_s ?? 0) > 0);
  if (used.length === 0) return null;
  const wall = used.some((x) => f.isKnown(x.main_self_s));
  const most = Math.max(...used.map((x) => x.share ?? 0), 1e-9);
  return section(title, note, table(used, [
    { title: "Function", cell: (x: HotFunction) => h("span", null, name(x.name), place(x.file ?? x.module, x.line)), sort: (x) => x.name },
    { title: "", wide: true, cell: (x) => bar((x.share ?? 0) / most, css("--accent"), f.percent(x.share)) },
    { title: "CPU share", right: true, cell: (x) => f.percent(x.share), sort: (x) => x.share },
    { title: "Self", right: true, cell: (x) => f.seconds(x.self_s), sort: (x) => x.self_s },
    { title: "Total", right: true, cell: (x) => f.seconds(x.total_s), sort: (x) => x.total_s },
    ...(wall ? [{ title: "Main, wall", right: true, cell: (x: HotFunction) => f.seconds(x.main_self_s), sort: (x: HotFunction) => x.main_self_s, hint: "time the main thread was there, waiting included" }] : []),
  ], { limit: 20 }));
}

function lines(title: string, rows: HotLine[]): HTMLElement | null {
  if (rows.length === 0) return null;
  const wall = rows.some((x) => f.isKnown(x.main_self_s));
  const most = Math.max(...rows.map((x) => x.share ?? 0), 1e-9);
  return section(title, null, table(rows, [
    { title: "Line", cell: (x: HotLine) => h("span", null, place(x.file ?? "?", x.line), x.function ? name(`  ${x.function}`) : null), sort: (x) => x.file },
    { title: "", wide: true, cell: (x) => bar((x.share ?? 0) / most, css("--accent"), f.percent(x.share)) },
    { title: "CPU share", right: true, cell: (x) => f.percent(x.share), sort: (x) => x.share },
    { title: "Self", right: true, cell: (x) => f.seconds(x.self_s), sort: (x) => x.self_s },
    ...(wall ? [{ title: "Main, wall", right: true, cell: (x: HotLine) => f.seconds(x.main_self_s), sort: (x: HotLine) => x.main_self_s }] : []),
  ], { limit: 20 }));
}

export const code: View = {
  id: "code", title: "Functions", group: "Time",
  has: ({ run }) => run.report.functions.length > 0 || run.report.lines.length > 0,
  render(into, { run }) {
    const r = run.report;
    if (r.functions.length === 0 && r.lines.length === 0) { into.append(empty("No stacks were sampled. The table of provenance says why.")); return; }
    into.append(h("p", { class: "lead" }, "From stacks sampled while the program ran. A share is of all CPU time sampled."));
    for (const part of [
      functions("Python functions", "CPU time of all threads; beside it the wall time of the main thread.", r.functions.filter(python)),
      lines("Python lines", r.lines.filter(python)),
      functions("Native functions", "What the processor ran, the interpreter itself included.", r.functions.filter((x) => !python(x))),
      lines("Native lines", r.lines.filter((x) => !python(x))),
    ]) if (part) into.append(part);
    if (r.python) into.append(section("Python threads", null, record(r.python)));
  },
};
