// view.ts: what a view is, and pieces that views share.
import { h, name } from "./dom";
import type { Document, Run, Site } from "./types";

export interface Context { doc: Document; run: Run; index: number; go: (view: string) => void }

export interface View {
  id: string;
  title: string;
  group: string;
  has: (context: Context) => boolean; // there is something to see
  // Fills the element; what it returns is called when the view goes.
  render: (into: HTMLElement, context: Context) => void | (() => void);
}

export function section(title: string, note: string | null, ...children: (Node | null)[]): HTMLElement {
  return h("section", null, h("h2", null, title), note ? h("p", { class: "note" }, note) : null, ...children);
}

export const empty = (text: string): HTMLElement => h("p", { class: "empty" }, text);

export const siteName = (sites: Site[], index: number): string => (index < 0 ? "(smaller)" : (sites[index]?.[0] ?? "?"));

export interface Column<T> {
  title: string;
  cell: (row: T) => Node | string | null;
  sort?: (row: T) => number | string | null | undefined;
  right?: boolean;
  wide?: boolean;
  hint?: string;
}

// A table that sorts by its columns. Rows beyond `limit` wait for a click.
export function table<T>(rows: T[], columns: Column<T>[], options: { limit?: number; sortBy?: number; caption?: string } = {}): HTMLElement {
  const limit = options.limit ?? 50;
  let order = options.sortBy ?? -1;
  let down = true;
  let all = false;
  const body = h("tbody");
  const more = h("button", { class: "quiet", type: "button", onclick: () => { all = true; fill(); } });
  const heads: HTMLElement[] = [];

  function key(row: T): number | string {
    const k = columns[order]?.sort?.(row);
    return k === null || k === undefined ? -Infinity : k;
  }

  function fill(): void {
    const sorted = order < 0 ? rows : [...rows].sort((a, b) => {
      const x = key(a), y = key(b);
      const d = x < y ? -1 : x > y ? 1 : 0;
      return down ? -d : d;
    });
    const shown = all ? sorted : sorted.slice(0, limit);
    body.replaceChildren(...shown.map((row) => h("tr", null, columns.map((c) => h("td", { class: `${c.right ? "right" : ""}${c.wide ? " wide" : ""}` }, c.cell(row) ?? "–")))));
    more.hidden = all || sorted.length <= limit;
    more.textContent = `Show all ${sorted.length.toLocaleString("en-US")}`;
    heads.forEach((head, i) => {
      if (i === order) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }

  const row = h("tr");
  columns.forEach((c, i) => {
    const sortable = c.sort !== undefined;
    const click = (): void => {
      if (order === i) down = !down;
      else { order = i; down = typeof (rows[0] && c.sort?.(rows[0])) !== "string"; }
      fill();
    };
    const head = h("th", { scope: "col", class: c.right ? "right" : "", title: c.hint ?? null }, sortable ? h("button", { type: "button", class: "sort", onclick: click }, c.title) : c.title);
    heads.push(head);
    row.appendChild(head);
  });
  fill();
  const element = h("table", null, options.caption ? h("caption", null, options.caption) : null, h("thead", null, row), body);
  return h("div", { class: "scroll-x", tabindex: 0 }, element, more);
}

export function facts(pairs: [string, string | Node | null | undefined][]): HTMLElement {
  return h("dl", { class: "facts" }, pairs.filter(([, v]) => v !== null && v !== undefined && v !== "").map(([k, v]) => h("div", null, h("dt", null, k), h("dd", null, v instanceof Node ? v : name(String(v), "value")))));
}

// Anything JSON, as a definition list: for parts that come from newer recorders.
export function anything(value: unknown, depth = 0): Node {
  if (value === null || value === undefined) return document.createTextNode("–");
  if (typeof value === "number") return document.createTextNode(Number.isInteger(value) ? value.toLocaleString("en-US") : String(Number(value.toPrecision(6))));
  if (typeof value !== "object") return name(String(value), "value");
  if (depth > 4) return document.createTextNode("…");
  if (Array.isArray(value)) {
    if (value.length === 0) return document.createTextNode("none");
    if (value.every((v) => v !== null && typeof v === "object" && !Array.isArray(v))) return objects(value as Record<string, unknown>[], depth);
    return h("span", null, value.slice(0, 200).map((v, i) => [i ? ", " : "", anything(v, depth + 1)]));
  }
  return h("dl", { class: "facts" }, Object.entries(value as Record<string, unknown>).map(([k, v]) => h("div", null, h("dt", null, k.replace(/_/g, " ")), h("dd", null, anything(v, depth + 1)))));
}

const isList = (v: unknown): v is Record<string, unknown>[] => Array.isArray(v) && v.length > 0 && v.every((x) => x !== null && typeof x === "object" && !Array.isArray(x));

// An object of scalars and lists: the scalars as facts, each list as a table of its own.
export function record(value: Record<string, unknown>): HTMLElement {
  const lists = Object.entries(value).filter(([, v]) => isList(v)) as [string, Record<string, unknown>[]][];
  const rest = Object.fromEntries(Object.entries(value).filter(([, v]) => !isList(v)));
  return h("div", null, Object.keys(rest).length ? anything(rest) : null, lists.map(([k, v]) => h("div", { class: "sub" }, h("h3", { class: "group" }, k.replace(/_/g, " ")), objects(v))));
}

export function objects(rows: Record<string, unknown>[], depth = 0): HTMLElement {
  const keys = [...new Set(rows.slice(0, 200).flatMap((r) => Object.keys(r)))].slice(0, 14);
  const plain = (r: Record<string, unknown>, k: string): number | string | null => {
    const v = r[k];
    return typeof v === "number" || typeof v === "string" ? v : null;
  };
  return table(rows, keys.map((k) => ({
    title: k.replace(/_/g, " "),
    cell: (r: Record<string, unknown>) => anything(r[k], depth + 1),
    sort: (r: Record<string, unknown>) => plain(r, k),
    right: rows.some((r) => typeof r[k] === "number"),
  })), { limit: 30 });
}
