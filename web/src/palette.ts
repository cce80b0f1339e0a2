// palette.ts: colours that keep apart for colour-blind eyes (after Okabe and Ito), in
// families: input is warm, computing is blue to green, waiting is violet, the rest grey.
// A colour never stands without its word.

const phases: Record<string, [string, string]> = {
  // light, dark
  data_loading: ["#d97a00", "#f0a13c"],
  preprocessing: ["#e8a33d", "#f4bd68"],
  augmentation: ["#c9b000", "#ddca3f"],
  collate: ["#a8702a", "#c79155"],
  transfer: ["#3aa6d9", "#67c3ee"],
  forward: ["#0a6ebd", "#4d9de0"],
  backward: ["#123f7a", "#7f9fd6"],
  gradient: ["#5b7fb8", "#a3bce6"],
  optimizer: ["#0a8f6c", "#39bd98"],
  sync: ["#b8568f", "#e089bb"],
  communication: ["#7d4fa8", "#b38bdc"],
  evaluation: ["#6b8e23", "#a3c35a"],
  checkpoint: ["#8c2f4e", "#d0708f"],
  model_creation: ["#6d6a75", "#a09dab"],
  other: ["#a7adb8", "#687080"],
};

export const phaseOrder = Object.keys(phases);

export const isDark = (): boolean => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

export function phaseColor(phase: string | null | undefined): string {
  const pair = phases[phase ?? "other"] ?? phases.other!;
  return pair[isDark() ? 1 : 0];
}

// Frames without a phase: warm to yellow, from their name, the same in every run.
const hash = (text: string): number => {
  let x = 2166136261;
  for (let i = 0; i < text.length && i < 64; i++) x = Math.imul(x ^ text.charCodeAt(i), 16777619);
  return (x >>> 0) / 4294967296;
};

export function frameColor(text: string, bytes = false): string {
  const x = hash(text);
  const hue = bytes ? 150 + x * 40 : 22 + x * 32;
  return isDark() ? `hsl(${hue} ${bytes ? 32 : 46}% ${44 + x * 10}%)` : `hsl(${hue} ${bytes ? 42 : 78}% ${64 + x * 10}%)`;
}

// How something changed: blue is less, vermilion is more; grey is the same.
export function changeColor(change: number): string {
  const size = Math.min(1, Math.abs(change));
  if (size < 0.005) return isDark() ? "#4a5160" : "#d6dae1";
  const dark = isDark();
  const hue = change > 0 ? 18 : 208;
  return `hsl(${hue} ${45 + size * 40}% ${dark ? 30 + size * 25 : 86 - size * 36}%)`;
}

const runs: [string, string][] = [["#0a6ebd", "#4d9de0"], ["#d97a00", "#f0a13c"], ["#0a8f6c", "#39bd98"], ["#b8568f", "#e089bb"], ["#7d4fa8", "#b38bdc"], ["#6b8e23", "#a3c35a"], ["#8c2f4e", "#d0708f"], ["#6d6a75", "#a09dab"]];
export const runColor = (i: number): string => runs[i % runs.length]![isDark() ? 1 : 0];

export const css = (variable: string): string => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
