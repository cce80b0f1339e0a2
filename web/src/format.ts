// format.ts: numbers in human units. Missing is a dash, never 0.
import type { Num } from "./types";

export const MISSING = "–";

const known = (x: Num): x is number => x !== null && x !== undefined && Number.isFinite(x);

// Three significant digits, thousands grouped.
export function digits(x: number, most = 3): string {
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1000) return Math.round(x).toLocaleString("en-US");
  const places = Math.max(0, most - 1 - Math.floor(Math.log10(size)));
  return x.toFixed(Math.min(places, 6)).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

export function seconds(s: Num): string {
  if (!known(s)) return MISSING;
  const size = Math.abs(s);
  if (size === 0) return "0 s";
  if (size < 1e-6) return `${digits(s * 1e9)} ns`;
  if (size < 1e-3) return `${digits(s * 1e6)} µs`;
  if (size < 1) return `${digits(s * 1e3)} ms`;
  if (size < 120) return `${digits(s)} s`;
  if (size < 7200) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
}

export const ms = (x: Num): string => seconds(known(x) ? x / 1e3 : null);

export function bytes(b: Num): string {
  if (!known(b)) return MISSING;
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let at = 0;
  let x = b;
  while (Math.abs(x) >= 1024 && at + 1 < units.length) { x /= 1024; at++; }
  return `${digits(x)} ${units[at]}`;
}

export const mib = (x: Num): string => bytes(known(x) ? x * 1048576 : null);

export function count(x: Num): string {
  if (!known(x)) return MISSING;
  if (Math.abs(x) >= 1e7) return `${digits(x / 1e6)} M`;
  return Number.isInteger(x) ? x.toLocaleString("en-US") : digits(x);
}

export function percent(share: Num): string {
  if (!known(share)) return MISSING;
  const p = share * 100;
  if (p !== 0 && Math.abs(p) < 0.1) return `${digits(p, 1)} %`;
  return `${p.toFixed(1)} %`;
}

/** 12.3 G: powers of a thousand. */
export function scaled(x: number): string {
  const prefixes = ["", "k", "M", "G", "T", "P", "E"];
  const i = Math.max(0, Math.min(prefixes.length - 1, Math.floor(Math.log10(Math.abs(x) || 1) / 3)));
  return `${digits(x / 1000 ** i)} ${prefixes[i]}`.trim();
}

export function value(x: Num, unit: string | null | undefined): string {
  if (!known(x)) return MISSING;
  switch (unit) {
    case "s": return seconds(x);
    case "ms": return ms(x);
    case "ns": return seconds(x / 1e9);
    case "bytes": case "B": return bytes(x);
    case "mb": case "MB": case "MiB": return mib(x);
    case "share": return percent(x);
    case "percent": case "%": return `${digits(x)} %`;
    case "bytes_per_s": case "B/s": return `${bytes(x)}/s`;
    case "mb_per_s": case "MB/s": case "MiB/s": return `${mib(x)}/s`;
    case null: case undefined: case "": case "count": case "1": return count(Number(x.toPrecision(3)));
    case "flop": return scaled(x);
    case "1/s": return `${digits(x)}/s`;
    default: return `${digits(x, 4)} ${unit.replace(/_per_/g, "/")}`;
  }
}

export function difference(before: Num, after: Num): string {
  if (!known(before) || !known(after)) return MISSING;
  if (before === 0) return after === 0 ? "=" : "new";
  const d = (after - before) / Math.abs(before);
  if (Math.abs(d) < 0.0005) return "=";
  return `${d > 0 ? "+" : "−"}${digits(Math.abs(d) * 100)} %`;
}

export const words = (id: string): string => id.replace(/_/g, " ");
export const isKnown = known;
