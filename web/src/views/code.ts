// code.ts: functions and lines, from sampled stacks.
import { bar, h, name, place } from "../dom";
import * as f from "../format";
import { css } from "../palette";
import { anything, empty, section, table, type View } from "../view";
import type { HotFunction, HotLine } from "../types";

export const code: View = {
  id: "code", title: "Functions and lines", group: "Time",
  has: ({ run }) => run.report.functions.length > 0 || run.report.lines.length > 0,
  render(into, { run }) {
    const r = run.report;
    if (r.functions.length === 0 && r.lines.length === 0) { into.append(empty("No stacks were sampled. The table of provenance says why.")); return; }
    into.append(h("p", { class: "lead" }, "From stacks sampled while the program ran: CPU time by function and by line. Share is of all sampled time."));
    const most = Math.max(...r.functions.map((x) => x.share ?? 0), 1e-9);
    if (r.functions.length) into.append(section("Functions", null, table(r.functions, [
      { title: "Function", cell: (x: HotFunction) => h("span", null, name(x.name), place(x.file ?? x.module, x.line)), sort: (x) => x.name },
      { title: "", wide: true, cell: (x) => bar((x.share ?? 0) / most, css("--accent"), f.percent(x.share)) },
      { title: "Share", right: true, cell: (x) => f.percent(x.share), sort: (x) => x.share },
      { title: "Self", right: true, cell: (x) => f.seconds(x.self_s), sort: (x) => x.self_s },
      { title: "Total", right: true, cell: (x) => f.seconds(x.total_s), sort: (x) => x.total_s },
    ], { limit: 40 })));
    const top = Math.max(...r.lines.map((x) => x.share ?? 0), 1e-9);
    if (r.lines.length) into.append(section("Lines", null, table(r.lines, [
      { title: "Line", cell: (x: HotLine) => h("span", null, name(x.file ? `${x.file}:${x.line ?? "?"}` : "?"), x.function ? name(x.function, "path") : null), sort: (x) => x.file },
      { title: "", wide: true, cell: (x) => bar((x.share ?? 0) / top, css("--accent"), f.percent(x.share)) },
      { title: "Share", right: true, cell: (x) => f.percent(x.share), sort: (x) => x.share },
      { title: "Self", right: true, cell: (x) => f.seconds(x.self_s), sort: (x) => x.self_s },
    ], { limit: 40 })));
    if (r.python) into.append(section("Python", null, anything(r.python) as HTMLElement));
  },
};
