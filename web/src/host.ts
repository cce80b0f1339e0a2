// host.ts: where the document comes from. The one module that knows its host: a report
// carries it in the page; a server will answer a request.
import type { Document } from "./types";

export function loadDocument(): Document {
  const holder = document.getElementById("sonde-document");
  const parsed = JSON.parse(holder?.textContent ?? "") as Document;
  if (parsed.schema !== "sonde.app/1") throw new Error(`this page shows sonde.app/1, not ${String(parsed.schema)}`);
  holder?.remove(); // as text it is not needed any more, and may be megabytes
  return parsed;
}

// What the page remembers between visits. Files opened from a mail have no storage.
export function remember(key: string, value: string): void {
  try { localStorage.setItem(`sonde.${key}`, value); } catch { /* nothing to do about it */ }
}

export function recall(key: string): string | null {
  try { return localStorage.getItem(`sonde.${key}`); } catch { return null; }
}
