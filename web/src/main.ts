// main.ts: the frame around the views: header, navigation, theme, keyboard, print.
import { clear, h, name, svg } from "./dom";
import { loadDocument, recall, remember } from "./host";
import { isDark } from "./palette";
import { views } from "./views";
import type { Context, View } from "./view";
import type { Document } from "./types";

function mark(): SVGElement {
  const bars: [number, number][] = [[1, 10], [6, 5], [11, 13], [16, 8]];
  return svg("svg", { width: 20, height: 18, viewBox: "0 0 20 18", "aria-hidden": "true" },
    ...bars.map(([x, t], i) => svg("rect", { x, y: 17 - t, width: 3.4, height: t, rx: 1, fill: i === 2 ? "#d97a00" : "#0a6ebd" })));
}

class App {
  private main = h("main", { id: "main", tabindex: -1 });
  private side = h("nav", { class: "side", "aria-label": "Views" });
  private title = h("div", { class: "title" });
  private index = 0;
  private view: View = views[0]!;
  private leave: (() => void) | void = undefined;

  constructor(private doc: Document, root: HTMLElement) {
    const chosen = recall("theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
    this.index = doc.runs.length > 1 ? doc.runs.length - 1 : 0;
    clear(root);
    root.append(
      h("a", { class: "skip", href: "#main" }, "Skip to content"),
      h("header", { class: "top" }, h("div", { class: "brand" }, mark(), "Sonde"), this.title, this.tools()),
      h("div", { class: "frame" }, this.side, this.main),
    );
    addEventListener("hashchange", () => this.follow());
    addEventListener("keydown", (e) => this.key(e));
    addEventListener("beforeprint", () => this.printAll());
    addEventListener("afterprint", () => this.show());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.show());
    this.follow();
  }

  private get context(): Context {
    return { doc: this.doc, run: this.doc.runs[this.index]!, index: this.index, go: (view) => { location.hash = `#${view}`; } };
  }

  private tools(): HTMLElement {
    const theme = h("button", { class: "tool", type: "button", title: "Light or dark (t)", onclick: () => this.toggleTheme() }, "Theme");
    const print = h("button", { class: "tool print", type: "button", title: "All views on paper", onclick: () => window.print() }, "Print");
    const pick = this.doc.runs.length > 1 ? h("select", { "aria-label": "Run", onchange: (e: Event) => { this.index = Number((e.target as HTMLSelectElement).value); this.show(); } },
      this.doc.runs.map((r, i) => h("option", { value: i, selected: i === this.index }, `${i + 1}: ${(r.report.run.name ?? r.report.run.id).slice(0, 60)}`))) : null;
    return h("div", { class: "tools" }, pick, theme, print);
  }

  private toggleTheme(): void {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    remember("theme", next);
    this.show();
  }

  private follow(): void {
    const wanted = location.hash.slice(1);
    if (wanted === "main") return; // the skip link
    this.view = views.find((v) => v.id === wanted) ?? views[0]!;
    this.show();
    if (wanted) scrollTo(0, 0);
  }

  private navigation(): void {
    const context = this.context;
    clear(this.side);
    let group = "";
    for (const view of views) {
      if (view.id === "compare" && this.doc.runs.length < 2) continue;
      if (view.group !== group) { group = view.group; this.side.append(h("h3", null, group)); }
      const there = view.has(context);
      this.side.append(h("a", { href: `#${view.id}`, class: there ? "" : "without", "aria-current": view === this.view ? "page" : null, title: there ? null : "nothing was recorded" }, view.title));
    }
    const current = this.side.querySelector("[aria-current]");
    if (this.side.scrollWidth > this.side.clientWidth) current?.scrollIntoView({ block: "nearest", inline: "center" });
  }

  private heading(): void {
    const run = this.context.run.report.run;
    const command = run.command.join(" ");
    document.title = `${(run.name ?? run.id).slice(0, 80)} · Sonde`;
    clear(this.title);
    this.title.append(name(command || run.id, "command"), h("span", { class: "id" }, `run ${run.id.slice(0, 24)}`));
  }

  private show(): void {
    this.leave?.();
    this.leave = undefined;
    this.heading();
    this.navigation();
    clear(this.main);
    this.leave = this.put(this.view, this.main);
    this.main.append(h("footer", { class: "end" }, `Sonde ${this.doc.sonde}. `, this.doc.hidden ? "Home folders, names of people and machines, and secrets are hidden. " : "Nothing was hidden from this page. ", "This file loads nothing from anywhere."));
    document.documentElement.dataset.view = this.view.id;
  }

  private put(view: View, into: HTMLElement): (() => void) | void {
    into.append(h("h1", null, view.title));
    const context = this.context;
    try {
      return view.render(into, context);
    } catch (error) {
      into.append(h("p", { class: "empty", role: "alert" }, `This view could not be drawn: ${String(error).slice(0, 300)}`));
      console.error(error);
      return undefined;
    }
  }

  private printAll(): void {
    this.leave?.();
    clear(this.main);
    const ends: ((() => void) | void)[] = [];
    for (const view of views) {
      if (!view.has(this.context)) continue;
      const box = h("div", { class: "view-print" });
      this.main.append(box);
      ends.push(this.put(view, box));
    }
    this.leave = () => { for (const end of ends) end?.(); };
  }

  private key(e: KeyboardEvent): void {
    const target = e.target as HTMLElement;
    if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
    const at = views.indexOf(this.view);
    const shown = views.filter((v) => v.id !== "compare" || this.doc.runs.length > 1);
    if (e.key === "t") this.toggleTheme();
    else if (e.key === "]" || e.key === "[") {
      const next = shown[(shown.indexOf(views[at]!) + (e.key === "]" ? 1 : shown.length - 1)) % shown.length];
      if (next) location.hash = `#${next.id}`;
    } else if (e.key === "/") {
      const box = this.main.querySelector<HTMLInputElement>("input[type=search]");
      if (!box) return;
      box.focus();
      e.preventDefault();
    }
  }
}

const root = document.getElementById("app")!;
try {
  new App(loadDocument(), root);
} catch (error) {
  root.textContent = `This report could not be read: ${String(error).slice(0, 300)}`;
  console.error(error);
}
