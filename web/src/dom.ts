// dom.ts: elements made by hand. Strings become text, never markup.

type Child = Node | string | number | null | undefined | false | Child[];
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;

function append(parent: Node, child: Child): void {
  if (Array.isArray(child)) { for (const c of child) append(parent, c); return; }
  if (child === null || child === undefined || child === false) return;
  parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
}

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attributes?: Attributes | null, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function clear(element: Element): void {
  element.replaceChildren();
}

export function svg(tag: string, attributes: Record<string, string | number>, ...children: Node[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  for (const child of children) element.appendChild(child);
  return element;
}

// A bar whose length means something; the number stands beside it for those who read.
export function bar(share: number, color: string, label?: string): HTMLElement {
  const fill = h("i");
  fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  fill.style.background = color;
  return h("span", { class: "bar", role: "img", "aria-label": label ?? `${(share * 100).toFixed(1)} %` }, fill);
}

// Long names are cut by CSS; the whole of it is in the title, within reason.
export function name(text: string, className = "name"): HTMLElement {
  return h("span", { class: className, title: text.length > 2000 ? `${text.slice(0, 2000)}…` : text, dir: "auto" }, text.length > 400 ? `${text.slice(0, 400)}…` : text);
}

export function place(file: string | null | undefined, line: number | null | undefined): HTMLElement | null {
  if (!file) return null;
  const short = file.split("/").slice(-1)[0] ?? file;
  return h("span", { class: "place", title: line ? `${file}:${line}` : file, dir: "auto" }, line ? `${short}:${line}` : short);
}
