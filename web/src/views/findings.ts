// findings.ts: what is wrong, why, what to do about it and what that should bring.
import { h } from "../dom";
import * as f from "../format";
import { anything, empty, section, table, type View } from "../view";
import type { Bottleneck } from "../types";

const gain = (b: Bottleneck): string | null => {
  const g = b.predicted_gain;
  if (!g || !f.isKnown(g.mid)) return null;
  const range = f.isKnown(g.low) && f.isKnown(g.high) && g.low !== g.high ? ` (${f.percent(g.low)} to ${f.percent(g.high)})` : "";
  // "run" is from the first step to the last, but for what is before it.
  const of = g.of !== "run" ? "step" : b.id === "startup_bound" ? "the run's" : "the loop's";
  return `predicted: ${f.percent(g.mid)} of ${of} time saved${range}`;
};

export function findingCard(b: Bottleneck, short = false): HTMLElement {
  const because = Array.isArray(b.because) ? b.because : b.because ? [String(b.because)] : [];
  return h("article", { class: "finding" },
    h("header", null, h("span", { class: `chip ${b.severity}` }, b.severity), h("h3", null, f.words(b.id)), f.isKnown(b.score) ? h("span", { class: "small" }, `score ${f.digits(b.score, 2)}`) : null, gain(b) ? h("span", { class: "chip good" }, gain(b)!) : null),
    h("p", { class: "what" }, b.description),
    because.length ? h("p", { class: "small" }, `because: ${because.map((x) => f.words(typeof x === "string" ? x : JSON.stringify(x))).join(", ")}`) : null,
    b.recommendation ? h("p", { class: "do" }, b.recommendation) : null,
    !short && b.evidence && b.evidence.length > 0 ? h("details", { open: true }, h("summary", null, "Evidence"), table(b.evidence, [
      { title: "Metric", cell: (e) => f.words(e.metric) },
      { title: "Value", right: true, cell: (e) => (typeof e.value === "number" ? f.value(e.value, e.unit) : (e.value ?? f.MISSING)) },
      { title: "Source", cell: (e) => e.source },
    ])) : null);
}

const recommendation = (r: unknown): Node => {
  if (typeof r === "string") return h("p", null, r);
  const o = r as Record<string, unknown>;
  const text = o.text ?? o.recommendation ?? o.description ?? o.title;
  return typeof text === "string" ? h("p", null, text) : anything(r);
};

export const findings: View = {
  id: "findings", title: "Findings", group: "Summary",
  has: ({ run }) => run.report.bottlenecks.length > 0,
  render(into, { run }) {
    const r = run.report;
    into.append(h("p", { class: "lead" }, r.summary.verdict ?? ""));
    if (r.bottlenecks.length === 0) into.append(empty("No bottleneck was found: every rule that could be checked is quiet."));
    else into.append(section("Bottlenecks", "Most at stake first. The score is the share of run time, or the distance to this machine's limit, at stake.", ...r.bottlenecks.map((b) => findingCard(b))));
    if (r.recommendations.length > 0) into.append(section("Recommendations", null, h("ol", null, r.recommendations.map((x) => h("li", null, recommendation(x))))));
    const alerts = r.alerts;
    if (Array.isArray(alerts) && alerts.length > 0) into.append(section("Alerts that fired", null, anything(alerts) as HTMLElement));
    const hangs = r.hangs;
    if (Array.isArray(hangs) && hangs.length > 0) into.append(section("Hangs", "No step came for long; where the threads were.", anything(hangs) as HTMLElement));
  },
};
