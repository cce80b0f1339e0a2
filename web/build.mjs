// build.mjs: web/src becomes web/dist/report.html: one page, nothing beside it.
// `--output DIR` puts it elsewhere.
//
// The Content-Security-Policy names the script and the style by their hashes and
// allows nothing else: no network, no eval, no other script. The page has a marker
// where `sonde report` puts the document (src/present/html/html.c).
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const LIMIT_KB = 200;

async function bundle(entry, options) {
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    legalComments: "none",
    charset: "utf8",
    target: ["chrome90", "firefox90", "safari15"],
    ...options,
  });
  return result.outputFiles[0].text.trim();
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const script = await bundle("src/main.ts", { format: "iife" });
const style = await bundle("src/style.css", {});
if (/<\/(script|style)/i.test(script + style)) throw new Error("would end its own tag");

const policy = [
  "default-src 'none'",
  `script-src ${hash(script)}`,
  `style-src ${hash(style)}`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const page = readFileSync("src/page.html", "utf8")
  .replace("%POLICY%", () => policy)
  .replace("%STYLE%", () => style)
  .replace("%SCRIPT%", () => script);

const at = process.argv.indexOf("--output");
const folder = at > 0 ? process.argv[at + 1] : "dist";
mkdirSync(folder, { recursive: true });
writeFileSync(`${folder}/report.html`, page);
const kb = gzipSync(page).length / 1024;
console.log(`${folder}/report.html ${(page.length / 1024).toFixed(0)} kB, ${kb.toFixed(1)} kB gzipped`);
if (kb > LIMIT_KB) throw new Error(`more than ${LIMIT_KB} kB`);
