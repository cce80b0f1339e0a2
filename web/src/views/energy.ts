// energy.ts: joules, emissions, money: with the word for how each is known.
import { h } from "../dom";
import { Charts } from "../chart";
import * as f from "../format";
import { css } from "../palette";
import { anything, empty, section, table, type View } from "../view";

const number = (o: Record<string, unknown> | null, key: string): number | null => (o && typeof o[key] === "number" ? (o[key] as number) : null);

interface Part { joules?: number | null; status?: string; method?: string }

// Each part of the machine with its own word for how it is known.
function parts(e: Record<string, unknown>): HTMLElement {
  const rows = Object.entries(e).filter((x): x is [string, Part] => x[1] !== null && typeof x[1] === "object" && "status" in (x[1] as object));
  return table(rows, [
    { title: "Part", cell: ([k]) => f.words(k) },
    { title: "Energy", right: true, cell: ([, p]) => (f.isKnown(p.joules) ? `${f.digits(p.joules)} J` : f.MISSING), sort: ([, p]) => p.joules },
    { title: "Status", cell: ([, p]) => h("span", { class: `chip ${p.status ?? ""}` }, p.status ?? "") },
    { title: "Method", cell: ([, p]) => p.method ?? "" },
  ]);
}

export const energy: View = {
  id: "energy", title: "Energy", group: "Resources",
  has: ({ run }) => number(run.report.energy, "joules") !== null || run.report.cost !== null,
  render(into, { run }) {
    const e = run.report.energy;
    const joules = number(e, "joules");
    if (joules === null && !run.report.cost) { into.append(empty("No energy was measured or modelled for this run; the table of provenance says why.")); return; }
    const steps = run.report.summary.step_ms.count;
    const cards: [string, string, string | null][] = [
      ["energy", joules === null ? f.MISSING : joules >= 3.6e5 ? `${f.digits(joules / 3.6e6)} kWh` : `${f.digits(joules)} J`, e && typeof e.source === "string" ? e.source : null],
      ["CO₂e", f.isKnown(number(e, "co2e_g")) ? `${f.digits(number(e, "co2e_g")!)} g` : f.MISSING, null],
      ["per step", joules !== null && steps ? `${f.digits(joules / steps)} J` : f.MISSING, null],
    ];
    into.append(h("div", { class: "numbers" }, cards.map(([k, v, more]) => h("div", { class: "number" }, h("b", null, v), h("span", null, k), more ? h("small", null, more) : null))));
    const charts = new Charts();
    for (const [key, s] of Object.entries(run.report.monitors)) {
      if (!/power/.test(key) || s.points.length < 2) continue;
      into.append(section(f.words(key), null, charts.add({ x: s.points.map((p) => p[0]), format: (v) => f.value(v, s.unit), formatX: (v) => f.digits(v), xLabel: "seconds", label: key, height: 160, lines: [{ label: key, color: css("--accent"), values: s.points.map((p) => p[1]), fill: true }] })));
    }
    if (e) into.append(section("How it is known", null, parts(e), anything(Object.fromEntries(Object.entries(e).filter(([k, v]) => (v === null || typeof v !== "object") && !/^(joules|co2e_g|source)$/.test(k)))) as HTMLElement));
    if (run.report.cost) into.append(section("Cost", null, anything(run.report.cost) as HTMLElement));
    return () => charts.destroy();
  },
};
