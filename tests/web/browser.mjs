// browser.mjs: drives Debian's Chromium over pages of the report and says what it saw.
//
//     node browser.mjs '{"task": "views", "page": "/tmp/run.html", …}'
//
// Judging is the caller's (tests/system/test_html.py): here are only facts, as JSON.
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import path from "node:path";

const web = path.resolve(path.dirname(new URL(import.meta.url).pathname), "../../web");
const { chromium } = createRequire(path.join(web, "package.json"))("playwright-core");
const job = JSON.parse(process.argv[2]);

const browser = await chromium.launch({
  executablePath: process.env.SONDE_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});

// A page that tells what went wrong: errors, requests to anywhere, dialogs.
async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const seen = { errors: [], requests: [], dialogs: 0 };
  // (That canvases are read back is the tests' own doing.)
  page.on("console", (m) => { if ((m.type() === "error" || m.type() === "warning") && !/willReadFrequently/.test(m.text())) seen.errors.push(m.text().slice(0, 300)); });
  page.on("pageerror", (e) => seen.errors.push(e.message.slice(0, 300)));
  page.on("request", (r) => { if (!/^(file|data|blob):/.test(r.url())) seen.requests.push(r.url()); });
  page.on("dialog", async (d) => { seen.dialogs++; await d.dismiss(); });
  return { page, seen, context };
}

const address = (file, view) => `${pathToFileURL(file).href}${view ? `#${view}` : ""}`;
const settled = (page, view) => page.waitForFunction((v) => document.documentElement.dataset.view === v, view, { timeout: 60000 }).then(() => page.evaluate(() => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))));

// Distinct colours of a canvas: a blank one has one or two.
const colours = (page, selector) => page.evaluate((s) => [...document.querySelectorAll(s)].map((c) => {
  const data = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
  const set = new Set();
  for (let i = 0; i < data.length; i += 4 * 37) set.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
  return set.size;
}), selector);

async function look(page, view) {
  const began = performance.now();
  await page.evaluate((v) => { location.hash = `#${v}`; }, view);
  await settled(page, view);
  const took = performance.now() - began;
  const facts = await page.evaluate(() => ({
    text: document.querySelector("main").innerText.length,
    rows: document.querySelectorAll("main tbody tr").length,
    charts: document.querySelectorAll("main .chart canvas").length,
    pictures: document.querySelectorAll("main svg.hist").length,
    failed: document.querySelector("main [role=alert]")?.textContent ?? null,
    wide: document.documentElement.scrollWidth - innerWidth,
    heading: document.querySelector("main h1").textContent,
    injected: document.querySelectorAll("main script, main img, main iframe, main object").length,
    hacked: typeof window.hacked !== "undefined",
  }));
  return { view, took_ms: took, ...facts, canvas: await colours(page, "main canvas") };
}

const tasks = {
  // Every view, in one look of the page.
  async views({ page: file, views, look: name, options, screens }) {
    const { page, seen } = await open(options);
    await page.goto(address(file));
    const facts = [];
    for (const view of views) {
      facts.push(await look(page, view));
      if (screens) await page.screenshot({ path: path.join(screens, `${name}-${view}.png`), fullPage: true, animations: "disabled" });
    }
    return { ...seen, views: facts };
  },

  // Pictures for the gallery: what a person sees first, perhaps after a click.
  async shots({ shots, options }) {
    const { page, seen } = await open(options);
    for (const { page: file, view, path: to, click, choose, full } of shots) {
      await page.goto("about:blank");
      await page.goto(address(file, view));
      if (view) await settled(page, view);
      if (choose) await page.locator("main select").nth(choose[0]).selectOption({ label: choose[1] });
      if (click) await page.locator(click).first().click();
      await page.evaluate(() => scrollTo(0, 0));
      await page.waitForTimeout(150);
      await page.screenshot({ path: to, fullPage: full ?? false, animations: "disabled" });
    }
    return seen;
  },

  // What the policy says, and that it is kept.
  async policy({ page: file }) {
    const { page } = await open();
    await page.goto(address(file));
    await settled(page, "overview");
    return page.evaluate(async () => {
      const violations = [];
      document.addEventListener("securitypolicyviolation", (e) => violations.push(e.effectiveDirective));
      const script = document.createElement("script");
      script.textContent = "window.hacked = 1";
      document.body.append(script);
      let fetched = true;
      try { await fetch("data:text/plain,x"); } catch { fetched = false; }
      const holder = document.createElement("div");
      holder.innerHTML = "<img src=x onerror='window.hacked = 1'>";
      document.body.append(holder);
      await new Promise((r) => setTimeout(r, 200));
      return { policy: document.querySelector("meta[http-equiv]").content, violations, fetched, hacked: typeof window.hacked !== "undefined", outside: document.querySelectorAll("[src]:not(img), link[rel=stylesheet]").length };
    });
  },

  // As a person would: search, zoom, sort, theme, keyboard.
  async hands({ page: file }) {
    const { page, seen } = await open();
    await page.goto(address(file));
    const facts = {};
    await look(page, "flame");
    await page.keyboard.press("/");
    await page.keyboard.type("forward");
    facts.search = await page.locator(".crumbs[aria-live]").innerText();
    await page.locator("main input[type=search]").fill("");
    await page.locator(".flame-box canvas").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    facts.zoomed = await page.locator(".crumbs").first().innerText();
    await page.keyboard.press("Escape");
    facts.back = await page.locator(".crumbs").first().innerText();
    facts.trees = await page.locator("main select").first().locator("option").allInnerTexts();
    await page.locator("main select").nth(1).selectOption("thread");
    facts.threads = await page.locator(".flame-box canvas").evaluate((c) => c.getBoundingClientRect().height);

    await look(page, "timeline");
    const where = () => page.locator(".where").innerText();
    facts.whole = await where();
    await page.locator(".timeline-box canvas").focus();
    for (let i = 0; i < 6; i++) await page.keyboard.press("+");
    facts.near = await where();
    await page.keyboard.press("ArrowRight");
    facts.moved = await where();
    await page.keyboard.press("0");
    facts.all = await where();
    await page.locator("main table button.tool").first().click();
    facts.step = await where();

    await look(page, "calls");
    const last = page.locator("main table").last();
    await last.locator("th button", { hasText: "Calls" }).click();
    facts.calls = (await last.locator("tbody tr td:nth-child(3)").allInnerTexts()).map((t) => Number(t.replace(/[^0-9]/g, "")));

    const before = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.locator("main h1").click();
    await page.keyboard.press("t");
    facts.themes = [before, await page.evaluate(() => getComputedStyle(document.body).backgroundColor)];
    await page.keyboard.press("]");
    facts.next = await page.evaluate(() => location.hash);
    await page.reload();
    await settled(page, "code");
    await page.keyboard.press("Tab");
    facts.focused = await page.evaluate(() => document.activeElement.textContent);
    return { ...seen, ...facts };
  },

  async print({ page: file, pdf }) {
    const { page, seen } = await open();
    await page.goto(address(file));
    await settled(page, "overview");
    const bytes = await page.pdf({ path: pdf, format: "A4" });
    return { ...seen, pages: (bytes.toString("latin1").match(/\/Type\s*\/Page\b/g) ?? []).length };
  },

  // The drawing of one frame, among few zones and among many: what does it depend on?
  async speed({ template, zones, folder }) {
    const results = [];
    for (const count of zones) {
      const file = path.join(folder, `synthetic-${count}.html`);
      writeFileSync(file, readFileSync(template, "utf8").replace("%SONDE_DOCUMENT%", () => JSON.stringify(synthetic(count))));
      const { page, seen, context } = await open();
      await page.goto(address(file));
      await look(page, "timeline");
      results.push({ zones: count, ...seen, ...(await page.evaluate(scroll)) });
      await context.close();
    }
    return { results };
  },
};

// The colour in the middle of a long zone that begins in the same pixel as a short one.
async function behindShort({ template, folder }) {
  const doc = synthetic(40);
  const t = doc.runs[0].timeline;
  t.windows[0] = { ...t.windows[0], lane: [0, 0, 0], depth: [0, 0, 0], site: [3, 4, 2], begin_delta_ns: [1e10, 2000, 2000], ns: [1000, 1000, 5e10] };
  const file = path.join(folder, "behind.html");
  writeFileSync(file, readFileSync(template, "utf8").replace("%SONDE_DOCUMENT%", () => JSON.stringify(doc)));
  const { page, seen } = await open();
  await page.goto(address(file));
  await look(page, "timeline");
  const colour = await page.evaluate(() => {
    const v = document.querySelector("main").timelineView, s = v.surface;
    const ratio = s.canvas.width / s.width, x = v.x(35) * ratio, y = (v.places[0].top + 14 + 18 + 8) * ratio;
    return [...s.pen.getImageData(x, y, 1, 1).data].slice(0, 3);
  });
  return { ...seen, colour };
}
tasks.behind = behindShort;

// Eight threads, three deep, as dense as they can be.
function synthetic(count) {
  const lanes = 8, ns = { lane: [], depth: [], site: [], begin_delta_ns: [], ns: [] };
  const groups = Math.ceil(count / lanes / 5); // one outer, one middle, three inner
  let before = 0;
  const zone = (lane, depth, site, begin, length) => { ns.lane.push(lane); ns.depth.push(depth); ns.site.push(site); ns.begin_delta_ns.push(begin - before); ns.ns.push(length); before = begin; };
  const width = Math.floor(1e11 / groups);
  for (let l = 0; l < lanes; l++) for (let g = 0; g < groups; g++) {
    const at = g * width;
    zone(l, 0, 0, at, Math.floor(width * 0.95));
    zone(l, 1, 1, at + Math.floor(width * 0.02), Math.floor(width * 0.9));
    for (let k = 0; k < 3; k++) zone(l, 2, 2 + k, at + Math.floor(width * (0.03 + 0.3 * k)), Math.floor(width * 0.27));
  }
  const bucket = (n, v) => new Array(n).fill(v);
  const steps = Array.from({ length: 2000 }, (_, i) => [(i + 1) * 0.05, 40 + (i % 17)]);
  const sums = { count: 0, mean: null, std: null, min: null, max: null, p50: null, p95: null, p99: null };
  const report = {
    schema: "sonde.report/1", run: { id: "synthetic", name: null, command: ["synthetic"], started: null, duration_s: 100, exit: { code: 0, signal: null, cause: "ok" }, death: null, tags: {}, params: {}, metrics: {}, rank: 0, world_size: 1, state: "good", host: null, cwd: null, level: null },
    hardware: null, environment: null, summary: { verdict: null, why: null, step_ms: sums, events: 2 * count, lost: 0 }, phases: [], processes: [], epochs: [], ranks: [], operations: [], operations_left_out: { count: 0, self_s: 0 }, functions: [], lines: [], allocations: null, io: null, python: null, energy: null, cost: null, gpu: null, monitors: {}, monitoring: { interval_s: null, rounds: 0 }, bottlenecks: [], recommendations: [], alerts: [], hangs: [], open_zones: [], provenance: [], notes: [],
  };
  return { schema: "sonde.app/1", sonde: "test", hidden: true, runs: [{ report, flame: [], distributions: [],
    sites: [["step", "forward"], ["inner"], ["gemm", "forward"], ["copy", "transfer"], ["update", "optimizer"]],
    timeline: { duration_s: 100, lanes: Array.from({ length: lanes }, (_, i) => ({ pid: 1, tid: i + 1, depth: 3, zones: count / lanes, buckets: 512, name: `thread ${i}`, role: "main", main: i === 0, trains: i === 0, partial: false, busy: { forward: bucket(512, 70), transfer: bucket(512, 20) } })),
      lanes_left_out: 0, zones: count, steps: { count: 2000, per_point: 1, points: steps }, slowest: [], typical: [], windows: [{ kind: "whole", step: null, start_s: 0, end_s: 100, left_out: 0, ...ns }] } }] };
}

// Zooms and pans for 120 frames; each is drawn at once and timed, then shown.
async function scroll() {
  const view = document.querySelector("main").timelineView;
  const draws = [], frames = [];
  let last = 0;
  for (let i = 0; i < 120; i++) {
    const wide = 100 * Math.pow(0.5, (i % 40) / 3);
    const from = ((i * 7919) % 1000) / 1000 * (100 - wide);
    view.view(from, from + wide);
    const began = performance.now();
    view.surface.now();
    draws.push(performance.now() - began);
    const now = await new Promise((r) => requestAnimationFrame(r));
    if (last) frames.push(now - last);
    last = now;
  }
  const sorted = (a) => [...a].sort((x, y) => x - y);
  const at = (a, q) => sorted(a)[Math.floor(q * (a.length - 1))];
  return { draw_ms: { p50: at(draws, 0.5), p95: at(draws, 0.95), max: at(draws, 1) }, frame_ms: { p50: at(frames, 0.5), p95: at(frames, 0.95) } };
}

try {
  console.log(JSON.stringify(await tasks[job.task](job)));
} finally {
  await browser.close();
}
