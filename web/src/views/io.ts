// io.ts: files and sockets: who was read, how fast, how much of it came from the cache.
import { bar, h, name } from "../dom";
import * as f from "../format";
import { css } from "../palette";
import { empty, section, table, type View } from "../view";
import type { IoFile } from "../types";

export const io: View = {
  id: "io", title: "Files and sockets", group: "Resources",
  has: ({ run }) => (run.report.io?.files.length ?? 0) > 0,
  render(into, { run }) {
    const d = run.report.io;
    if (!d || d.files.length === 0) { into.append(empty("No file calls were captured.")); return; }
    const rate = (bytes: number, s: number): string => (s > 0 ? `${f.bytes(bytes / s)}/s` : f.MISSING);
    into.append(h("div", { class: "numbers" }, ([
      ["read", f.bytes(d.read?.bytes), d.read ? `${f.count(d.read.calls)} calls, ${f.seconds(d.read.total_s)}` : null],
      ["written", f.bytes(d.write?.bytes), d.write ? `${f.count(d.write.calls)} calls, ${f.seconds(d.write.total_s)}` : null],
      ["of the kernel's count", f.percent(d.coverage), "seen here"],
      ["files and sockets", f.count(d.file_count ?? d.files.length), (d.file_count ?? 0) > d.files.length ? `${f.count(d.files.length)} listed` : null],
    ] as [string, string, string | null][]).map(([k, v, more]) => h("div", { class: "number" }, h("b", null, v), h("span", null, k), more ? h("small", null, more) : null))));
    const time = (x: IoFile): number => x.read_s + x.write_s;
    const most = Math.max(...d.files.map(time), 1e-12);
    into.append(section("By file", "Sorted by the time calls took.", table(d.files, [
      { title: "File", cell: (x) => h("span", null, name(x.path ?? "?"), x.class && x.class !== "file" ? h("span", { class: "place" }, x.class) : null), sort: (x) => x.path },
      { title: "Time", cell: (x) => bar(time(x) / most, css("--accent"), f.seconds(time(x))) },
      { title: "", right: true, cell: (x) => f.seconds(time(x)), sort: time },
      { title: "Read", right: true, cell: (x) => f.bytes(x.read_bytes), sort: (x) => x.read_bytes },
      { title: "Calls", right: true, cell: (x) => f.count(x.reads), sort: (x) => x.reads },
      { title: "Speed", right: true, cell: (x) => rate(x.read_bytes, x.read_s) },
      { title: "Written", right: true, cell: (x) => f.bytes(x.write_bytes), sort: (x) => x.write_bytes },
      { title: "Calls", right: true, cell: (x) => f.count(x.writes), sort: (x) => x.writes },
      { title: "In order", right: true, cell: (x) => f.percent(x.read_sequential_share), hint: "reads that went on where the one before ended" },
      { title: "Cached", right: true, cell: (x) => f.percent(x.warm_share), hint: "of the file, in the page cache when it was opened" },
    ], { sortBy: 2, limit: 40 })));
    if (d.zones && d.zones.length > 0) into.append(section("By zone", "Which part of the program asked.", table(d.zones, [
      { title: "Zone", cell: (z) => name(z.zone ?? "(outside of zones)"), sort: (z) => z.zone },
      { title: "Read", right: true, cell: (z) => f.bytes(z.read_bytes), sort: (z) => z.read_bytes },
      { title: "Reads", right: true, cell: (z) => f.count(z.reads), sort: (z) => z.reads },
      { title: "Time", right: true, cell: (z) => f.seconds(z.read_s), sort: (z) => z.read_s },
      { title: "Written", right: true, cell: (z) => f.bytes(z.write_bytes), sort: (z) => z.write_bytes },
      { title: "Writes", right: true, cell: (z) => f.count(z.writes), sort: (z) => z.writes },
      { title: "Time", right: true, cell: (z) => f.seconds(z.write_s), sort: (z) => z.write_s },
    ], { sortBy: 1, limit: 20 })));
  },
};
