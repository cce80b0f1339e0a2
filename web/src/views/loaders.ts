// loaders.ts: data loaders: how long the training waited, what workers did, and the way
// of each batch from its indices to the step that used it.
import { Surface, Tip } from "../canvas";
import { bar, h, name, place } from "../dom";
import * as f from "../format";
import { css, phaseColor } from "../palette";
import { empty, record, section, table, type View } from "../view";
import type { Num } from "../types";

interface Times { count: number; mean: Num; min: Num; max: Num; p50: Num; p95: Num; p99: Num }
interface Worker { worker: number; pid: number; batches: Num; samples: Num; busy_s: Num; put_s: Num; idle_s: Num; alive_s: Num; cpu_s: Num; sample_mean_ms: Num; sample_p95_ms: Num }
interface Slow { index: Num; number: Num; path: string | null; ms: Num; cpu_ms: Num; times_median: Num; slowest_transform: string | null; slowest_transform_ms: Num; worker: Num; epoch: Num; batch: Num }
interface Transform { name: string | null; place: Num; random: boolean; count: number; mean_ms: Num; p95_ms: Num; max_ms: Num; total_s: Num; share: Num }
interface Batch {
  epoch: number; batch: number; step: number; worker: Num; samples: number; bytes: number; ready: boolean; early: boolean;
  index_sent_s: Num; begun_s: Num; made_s: Num; put_s: Num; sent_s: Num; arrived_s: Num; asked_s: Num; given_s: Num; collate_ms: Num; slowest_index: Num; slowest_ms: Num;
}
interface Epoch { epoch: number; iter_s: Num; first_batch_s: Num; wait_s: Num; duration_s: Num; batches: number; exhausted: boolean }
interface LoaderData {
  id: number; file: string | null; line: Num; class: string | null; dataset: string | null; dataset_length: Num; sampler: string | null; collate_fn: string | null;
  num_workers: Num; prefetch_factor: Num; batch_size: Num; pin_memory: boolean; persistent_workers: boolean; shuffle: boolean; start_method: string | null; training: boolean;
  epochs: Num; batches: Num; samples: Num; bytes: Num; wait_s: Num; wait_share: Num; step_share: Num; ready_share: Num; sample_timing: string | null;
  transforms?: Transform[]; workers?: Worker[]; epoch_list?: Epoch[]; slowest_samples?: Slow[]; recent_batches?: Batch[];
  [key: string]: unknown;
}

// From indices sent to batch used, each stretch with its word.
const ways: [string, keyof Batch, keyof Batch, () => string][] = [
  ["waits for a worker", "index_sent_s", "begun_s", () => css("--line")],
  ["made", "begun_s", "made_s", () => phaseColor("data_loading")],
  ["handed over", "made_s", "arrived_s", () => phaseColor("collate")],
  ["waits to be asked for", "arrived_s", "asked_s", () => phaseColor("transfer")],
  ["training waits for it", "asked_s", "given_s", () => phaseColor("sync")],
];

class Lineage {
  readonly element: HTMLElement;
  private surface: Surface;
  private tip = new Tip();
  private static ROW = 13;
  private batches: Batch[];
  private from: number;
  private to: number;

  constructor(all: Batch[]) {
    this.batches = all.slice(-60);
    const moments = this.batches.flatMap((b) => [b.index_sent_s, b.given_s]).filter(f.isKnown);
    this.from = Math.min(...moments);
    this.to = Math.max(...moments, this.from + 1e-6);
    this.surface = new Surface((s) => this.draw(s), `The way of the last ${this.batches.length} batches from indices to use`);
    this.surface.canvas.style.height = `${this.batches.length * Lineage.ROW + 26}px`;
    this.surface.canvas.addEventListener("mousemove", (e) => this.hover(e));
    this.surface.canvas.addEventListener("mouseleave", () => this.tip.hide());
    this.element = h("div", { class: "stage flame-box" }, this.surface.canvas);
  }

  private x(t: number): number { return 104 + ((t - this.from) / (this.to - this.from)) * (this.surface.width - 112); }

  private draw(s: Surface): void {
    const pen = s.pen;
    pen.fillStyle = css("--panel");
    pen.fillRect(0, 0, s.width, s.height);
    pen.font = "10.5px system-ui, sans-serif";
    pen.textBaseline = "middle";
    this.batches.forEach((b, i) => {
      const y = 8 + i * Lineage.ROW;
      pen.fillStyle = css("--soft");
      pen.fillText(`step ${b.step}${f.isKnown(b.worker) && b.worker >= 0 ? `, worker ${b.worker}` : ""}`, 8, y + 5);
      for (const [, from, to, color] of ways) {
        const a = b[from] as Num, z = b[to] as Num;
        if (!f.isKnown(a) || !f.isKnown(z) || z <= a) continue;
        pen.fillStyle = color();
        pen.fillRect(this.x(a), y, Math.max(0.7, this.x(z) - this.x(a)), Lineage.ROW - 3);
      }
    });
    pen.fillStyle = css("--soft");
    pen.fillText(f.seconds(this.from), 104, s.height - 8);
    pen.textAlign = "right";
    pen.fillText(f.seconds(this.to), s.width - 8, s.height - 8);
    pen.textAlign = "left";
  }

  private hover(e: MouseEvent): void {
    const [, y] = this.surface.at(e);
    const b = this.batches[Math.floor((y - 8) / Lineage.ROW)];
    if (!b) { this.tip.hide(); return; }
    this.tip.show(e, `epoch ${b.epoch}, batch ${b.batch}, step ${b.step}`, `${b.samples} samples, ${f.bytes(b.bytes)}${f.isKnown(b.worker) ? `, worker ${b.worker}` : ""}`,
      ...ways.map(([word, from, to]) => { const a = b[from] as Num, z = b[to] as Num; return f.isKnown(a) && f.isKnown(z) && z >= a ? `${word}: ${f.seconds(z - a)}` : null; }),
      f.isKnown(b.slowest_index) ? `slowest sample ${b.slowest_index}: ${f.ms(b.slowest_ms)}` : null);
  }

  destroy(): void { this.surface.destroy(); this.tip.destroy(); }
}

// What a worker's life went to.
function workerBar(w: Worker): HTMLElement {
  const alive = w.alive_s ?? 0;
  const parts: [Num, string, string][] = [[w.busy_s, phaseColor("data_loading"), "making"], [w.put_s, phaseColor("collate"), "handing over"], [w.idle_s, css("--line"), "idle"]];
  const box = h("span", { class: "split", role: "img", title: parts.map(([s, , word]) => `${word} ${f.seconds(s)}`).join("\n"), "aria-label": parts.map(([s, , word]) => `${word} ${f.seconds(s)}`).join(", ") });
  box.style.height = "12px";
  box.style.margin = "4px 0";
  for (const [s, color] of parts) if (f.isKnown(s) && alive > 0) { const i = h("i"); i.style.flexGrow = String((s / alive) * 1000); i.style.background = color; box.append(i); }
  return box;
}

function timesTable(l: LoaderData): HTMLElement | null {
  const kinds: [string, string][] = [["fetch_ms", "training waits for a batch"], ["first_fetch_ms", "… the first of an epoch"], ["sample_ms", "one sample"], ["collate_ms", "collate"], ["batch_ms", "one batch, in a worker"], ["pickle_ms", "pickle"], ["send_ms", "send"], ["pin_ms", "pin memory"], ["transfer_ms", "transfer to the device"], ["idle_ms", "a worker has nothing to do"], ["consume_ms", "training uses a batch"]];
  const rows = kinds.map(([key, word]): [string, Times | null] => [word, (l[key] as Times | null) ?? null]).filter((x): x is [string, Times] => x[1] !== null && x[1].count > 0);
  if (rows.length === 0) return null;
  const most = Math.max(...rows.map(([, t]) => t.mean ?? 0), 1e-9);
  return table(rows, [
    { title: "", cell: ([word]) => word },
    { title: "", wide: true, cell: ([, t]) => bar((t.mean ?? 0) / most, css("--accent"), f.ms(t.mean)) },
    { title: "Mean", right: true, cell: ([, t]) => f.ms(t.mean), sort: ([, t]) => t.mean },
    { title: "Median", right: true, cell: ([, t]) => f.ms(t.p50), sort: ([, t]) => t.p50 },
    { title: "p95", right: true, cell: ([, t]) => f.ms(t.p95), sort: ([, t]) => t.p95 },
    { title: "p99", right: true, cell: ([, t]) => f.ms(t.p99), sort: ([, t]) => t.p99 },
    { title: "Longest", right: true, cell: ([, t]) => f.ms(t.max), sort: ([, t]) => t.max },
    { title: "Times", right: true, cell: ([, t]) => f.count(t.count), sort: ([, t]) => t.count },
  ]);
}

function numbers(l: LoaderData): HTMLElement {
  const yes = (b: boolean): string => (b ? "yes" : "no");
  return h("div", { class: "numbers" }, ([
    ["training waited", f.percent(l.wait_share), f.isKnown(l.wait_s) ? `${f.seconds(l.wait_s)} of the run` : null],
    ["batch was ready", f.percent(l.ready_share), "when it was asked for"],
    ["batches", f.count(l.batches), f.isKnown(l.samples) ? `${f.count(l.samples)} samples` : null],
    ["workers", f.count(l.num_workers), f.isKnown(l.prefetch_factor) ? `prefetch ${l.prefetch_factor}` : null],
    ["batch size", f.count(l.batch_size), null],
    ["pinned memory", yes(l.pin_memory), null],
    ["persistent workers", yes(l.persistent_workers), null],
  ] as [string, string, string | null][]).map(([k, v, more]) => h("div", { class: "number" }, h("b", null, v), h("span", null, k), more ? h("small", null, more) : null)));
}

function render(l: LoaderData, i: number, keep: { destroy: () => void }[]): HTMLElement {
  const box = section(`${l.class ?? "Loader"}${l.training ? ", training" : ""}`, null,
    h("p", { class: "note" }, name(l.dataset ?? `loader ${i + 1}`), f.isKnown(l.dataset_length) ? ` of ${f.count(l.dataset_length)} samples` : "", place(l.file, l.line)), numbers(l));
  const times = timesTable(l);
  if (times) box.append(h("h3", { class: "group" }, "How long things take"), times, l.sample_timing ? h("p", { class: "small" }, `Samples: ${l.sample_timing}.`) : h("span"));
  const batches = (l.recent_batches ?? []).filter((b) => f.isKnown(b.given_s) && f.isKnown(b.index_sent_s ?? b.asked_s));
  if (batches.length > 1) {
    const lineage = new Lineage(batches);
    keep.push(lineage);
    box.append(h("h3", { class: "group" }, "The way of the newest batches"), h("div", { class: "legend" }, ways.map(([word, , , color]) => { const s = h("i", { class: "swatch" }); s.style.background = color(); return h("span", null, s, word); })), lineage.element);
  }
  if (l.workers && l.workers.length > 0) box.append(h("h3", { class: "group" }, "Workers"), table(l.workers, [
    { title: "Worker", cell: (w) => `${w.worker} (${w.pid})`, sort: (w) => w.worker },
    { title: "Life", wide: true, cell: workerBar },
    { title: "Making", right: true, cell: (w) => f.seconds(w.busy_s), sort: (w) => w.busy_s },
    { title: "Handing over", right: true, cell: (w) => f.seconds(w.put_s), sort: (w) => w.put_s },
    { title: "Idle", right: true, cell: (w) => f.seconds(w.idle_s), sort: (w) => w.idle_s },
    { title: "CPU", right: true, cell: (w) => f.seconds(w.cpu_s), sort: (w) => w.cpu_s },
    { title: "Batches", right: true, cell: (w) => f.count(w.batches), sort: (w) => w.batches },
    { title: "One sample", right: true, cell: (w) => f.ms(w.sample_mean_ms), sort: (w) => w.sample_mean_ms },
  ]));
  if (l.transforms && l.transforms.length > 0) {
    const most = Math.max(...l.transforms.map((t) => t.share ?? 0), 1e-9);
    box.append(h("h3", { class: "group" }, "Transforms"), table(l.transforms, [
      { title: "Transform", cell: (t) => h("span", null, name(t.name ?? "?"), t.random ? h("span", { class: "place" }, "random") : null), sort: (t) => t.name },
      { title: "", wide: true, cell: (t) => bar((t.share ?? 0) / most, phaseColor("augmentation"), f.percent(t.share)) },
      { title: "Share", right: true, cell: (t) => f.percent(t.share), sort: (t) => t.share },
      { title: "Mean", right: true, cell: (t) => f.ms(t.mean_ms), sort: (t) => t.mean_ms },
      { title: "p95", right: true, cell: (t) => f.ms(t.p95_ms), sort: (t) => t.p95_ms },
      { title: "Longest", right: true, cell: (t) => f.ms(t.max_ms), sort: (t) => t.max_ms },
      { title: "Total", right: true, cell: (t) => f.seconds(t.total_s), sort: (t) => t.total_s },
    ]));
  }
  if (l.slowest_samples && l.slowest_samples.length > 0) box.append(h("h3", { class: "group" }, "Slowest samples"), table(l.slowest_samples, [
    { title: "Sample", cell: (s) => h("span", null, name(f.isKnown(s.index) ? String(s.index) : `number ${s.number ?? "?"}`), s.path ? name(s.path, "path") : null), sort: (s) => s.index },
    { title: "Took", right: true, cell: (s) => f.ms(s.ms), sort: (s) => s.ms },
    { title: "CPU", right: true, cell: (s) => f.ms(s.cpu_ms), sort: (s) => s.cpu_ms },
    { title: "Against the median", right: true, cell: (s) => (f.isKnown(s.times_median) ? `${f.digits(s.times_median)}×` : f.MISSING), sort: (s) => s.times_median },
    { title: "Mostly in", cell: (s) => (s.slowest_transform ? h("span", null, name(s.slowest_transform), ` ${f.ms(s.slowest_transform_ms)}`) : f.MISSING) },
    { title: "Worker", right: true, cell: (s) => f.count(s.worker), sort: (s) => s.worker },
    { title: "Epoch", right: true, cell: (s) => f.count(s.epoch), sort: (s) => s.epoch },
    { title: "Batch", right: true, cell: (s) => f.count(s.batch), sort: (s) => s.batch },
  ], { limit: 20 }));
  if (l.epoch_list && l.epoch_list.length > 0) box.append(h("h3", { class: "group" }, "Epochs"), table(l.epoch_list, [
    { title: "Epoch", cell: (e) => f.count(e.epoch), sort: (e) => e.epoch },
    { title: "Took", right: true, cell: (e) => f.seconds(e.duration_s), sort: (e) => e.duration_s },
    { title: "Waited", right: true, cell: (e) => f.seconds(e.wait_s), sort: (e) => e.wait_s },
    { title: "To start", right: true, cell: (e) => f.seconds(e.iter_s), hint: "until the iterator and its workers were there" },
    { title: "First batch", right: true, cell: (e) => f.seconds(e.first_batch_s), sort: (e) => e.first_batch_s },
    { title: "Batches", right: true, cell: (e) => f.count(e.batches), sort: (e) => e.batches },
  ], { limit: 20 }));
  return box;
}

// Lineage of every batch is drawn; what a newer recorder adds is listed as it comes.
const shown = /^(id|pid|file|line|class|dataset|dataset_length|num_workers|prefetch_factor|batch_size|pin_memory|persistent_workers|training|batches|samples|wait_s|wait_share|ready_share|sample_timing|transforms|workers|epoch_list|slowest_samples|recent_batches|.*_ms)$/;

export const loaders: View = {
  id: "loaders", title: "Data loaders", group: "Time",
  has: ({ run }) => Array.isArray(run.report.loaders) && run.report.loaders.length > 0,
  render(into, { run }) {
    const list = (Array.isArray(run.report.loaders) ? run.report.loaders : []) as LoaderData[];
    if (list.length === 0) { into.append(empty("No data loader was seen in this run.")); return undefined; }
    const keep: { destroy: () => void }[] = [];
    list.slice(0, 12).forEach((l, i) => {
      const box = render(l, i, keep);
      const rest = Object.fromEntries(Object.entries(l).filter(([k, v]) => !shown.test(k) && v !== null));
      if (Object.keys(rest).length) box.append(h("details", null, h("summary", null, "More about this loader"), record(rest)));
      into.append(box);
    });
    if (list.length > 12) into.append(h("p", { class: "small" }, `${list.length - 12} more loaders are not shown.`));
    return () => { for (const k of keep) k.destroy(); };
  },
};
