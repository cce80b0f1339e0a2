// canvas.ts: a canvas as sharp as the screen, redrawn at most once a frame.

export class Surface {
  readonly canvas = document.createElement("canvas");
  readonly pen: CanvasRenderingContext2D;
  width = 0;
  height = 0;
  private pending = 0;
  private observer: ResizeObserver;

  constructor(private draw: (s: Surface) => void, label: string) {
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", label);
    this.pen = this.canvas.getContext("2d", { alpha: false })!;
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.canvas);
  }

  setHeight(pixels: number): void {
    this.canvas.style.height = `${pixels}px`;
    this.resize();
  }

  private resize(): void {
    const box = this.canvas.getBoundingClientRect();
    const ratio = Math.min(3, devicePixelRatio || 1);
    const w = Math.max(1, Math.round(box.width * ratio)), t = Math.max(1, Math.round(box.height * ratio));
    if (this.canvas.width !== w || this.canvas.height !== t) { this.canvas.width = w; this.canvas.height = t; }
    this.width = box.width;
    this.height = box.height;
    this.now();
  }

  // Soon: many requests in a frame are one drawing.
  later(): void {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => { this.pending = 0; this.now(); });
  }

  now(): void {
    if (this.width < 2 || this.height < 2) return;
    const ratio = this.canvas.width / this.width;
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.draw(this);
  }

  at(event: { clientX: number; clientY: number }): [number, number] {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  destroy(): void {
    this.observer.disconnect();
    if (this.pending) cancelAnimationFrame(this.pending);
  }
}

// Text cut to a width; measuring is dear, so widths are guessed from a monospaced face.
export function fitted(text: string, width: number, perChar: number): string {
  const room = Math.floor(width / perChar);
  if (room < 3) return "";
  return text.length <= room ? text : `${text.slice(0, room - 1)}…`;
}

// Right-to-left marks would turn round what stands beside them.
export const plain = (text: string): string => text.replace(/[\u0000-\u001f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "·");

export class Tip {
  private element: HTMLElement;
  constructor() {
    this.element = document.createElement("div");
    this.element.className = "tip";
    this.element.hidden = true;
    document.body.appendChild(this.element);
  }
  show(event: { clientX: number; clientY: number }, ...lines: (string | null)[]): void {
    this.element.replaceChildren(...lines.filter((l): l is string => l !== null && l !== "").map((line, i) => {
      const e = document.createElement(i === 0 ? "b" : "div");
      e.dir = "auto";
      e.textContent = line.length > 300 ? `${line.slice(0, 300)}…` : line;
      return e;
    }));
    this.element.hidden = false;
    const w = this.element.offsetWidth, t = this.element.offsetHeight;
    const x = Math.min(event.clientX + 14, innerWidth - w - 8), y = event.clientY + 16 + t > innerHeight ? event.clientY - t - 12 : event.clientY + 16;
    this.element.style.left = `${Math.max(4, x)}px`;
    this.element.style.top = `${Math.max(4, y)}px`;
  }
  hide(): void { this.element.hidden = true; }
  destroy(): void { this.element.remove(); }
}
