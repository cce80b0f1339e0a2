// lanes.ts: the zones of a timeline, laid out so that drawing a frame never depends on
// how many there are: each row is sorted, and a pixel is found by halving.
import { phaseOrder } from "./palette";
import type { Site, Timeline } from "./types";

export interface Row {
  lane: number; depth: number; begin: Float64Array; end: Float64Array; site: Int32Array;
  phase: Uint8Array; // its own or that of the zone around it: a place in phaseOrder, plus 1
}


interface Draft { begin: number[]; end: number[]; site: number[] }

// Several windows may hold the same zone: they are the same when they begin together.
function settle(lane: number, depth: number, d: Draft): Row {
  const n = d.begin.length;
  let sorted = true;
  for (let i = 1; i < n; i++) if (d.begin[i]! < d.begin[i - 1]!) { sorted = false; break; }
  let order: Int32Array | null = null;
  if (!sorted) { order = new Int32Array(n); for (let i = 0; i < n; i++) order[i] = i; order.sort((a, b) => d.begin[a]! - d.begin[b]! || d.end[b]! - d.end[a]!); }
  const begin = new Float64Array(n), end = new Float64Array(n), site = new Int32Array(n);
  let kept = 0;
  for (let k = 0; k < n; k++) {
    const i = order ? order[k]! : k;
    if (kept && d.begin[i] === begin[kept - 1]) continue;
    begin[kept] = d.begin[i]!;
    end[kept] = d.end[i]!;
    site[kept] = d.site[i]!;
    kept++;
  }
  return { lane, depth, begin: begin.subarray(0, kept), end: end.subarray(0, kept), site: site.subarray(0, kept), phase: new Uint8Array(kept) };
}

// A zone without a phase has that of the zone around it. Both rows are in order, so one
// walk along the two finds who is in whom.
function inherit(inner: Row, outer: Row | undefined, own: Uint8Array): void {
  let o = 0;
  for (let i = 0; i < inner.begin.length; i++) {
    const phase = own[inner.site[i]!] ?? 0;
    if (phase || !outer) { inner.phase[i] = phase; continue; }
    const time = inner.begin[i]!;
    while (o + 1 < outer.begin.length && outer.begin[o + 1]! <= time) o++;
    if (o < outer.begin.length && outer.begin[o]! <= time && outer.end[o]! >= time) inner.phase[i] = outer.phase[o]!;
  }
}

export function rows(t: Timeline, sites: Site[]): Row[][] {
  const drafts: Draft[][] = t.lanes.map(() => []);
  for (const w of t.windows) {
    let at = w.start_s * 1e9;
    for (let i = 0; i < w.ns.length; i++) {
      at += w.begin_delta_ns[i]!;
      const lane = drafts[w.lane[i]!];
      const depth = w.depth[i]!;
      if (!lane || depth > 255) continue;
      while (lane.length <= depth) lane.push({ begin: [], end: [], site: [] });
      const d = lane[depth]!;
      d.begin.push(at / 1e9);
      d.end.push((at + w.ns[i]!) / 1e9);
      d.site.push(w.site[i]!);
    }
  }
  const own = Uint8Array.from(sites, (s) => (s[1] ? phaseOrder.indexOf(s[1]) + 1 : 0));
  return drafts.map((drafts_of, l) => {
    const lane = drafts_of.map((d, depth) => settle(l, depth, d));
    lane.forEach((row, depth) => inherit(row, lane[depth - 1], own));
    return lane;
  });
}

// The first zone that begins at or after `time`.
export function firstFrom(begin: Float64Array, time: number, low = 0): number {
  let high = begin.length;
  while (low < high) { const middle = (low + high) >> 1; if (begin[middle]! < time) low = middle + 1; else high = middle; }
  return low;
}

// What begins in the same pixel as zone i is not seen, unless it is the last one there
// and goes on beyond: zones of a row do not overlap, so only that one can.
export function nextSeen(row: Row, i: number, pixelEnd: number): number {
  const next = gallop(row.begin, pixelEnd, i + 1);
  return next - 1 > i && row.end[next - 1]! > pixelEnd ? next - 1 : next;
}

// The same as firstFrom, when it is likely to be near.
function gallop(begin: Float64Array, time: number, low: number): number {
  let step = 1;
  let at = low;
  while (at < begin.length && begin[at]! < time) { low = at + 1; at += step; step *= 2; }
  let high = Math.min(at, begin.length);
  while (low < high) { const middle = (low + high) >> 1; if (begin[middle]! < time) low = middle + 1; else high = middle; }
  return low;
}
