// energy.ts: joules, emissions, money: with the word for how each is known.
import { h } from "../dom";
import { Charts } from "../chart";
import * as f from "../format";
import { css } from "../palette";
import { anything, empty, section, type View } from "../view";

const number = (o: Record<string, unknown> | null, key: string): number | null => (o && typeof o[key] === "number" ? (o[key] as number) : null);

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
    if (e) into.append(section("How it is known", null, anything(e) as HTMLElement));
    if (run.report.cost) into.append(section("Cost", null, anything(run.report.cost) as HTMLElement));
    return () => charts.destroy();
  },
};
