// types.ts: the document the app reads: sonde.app/1 around sonde.report/1.
// Missing is null, never 0 (docs/report-json.md, docs/guide-html.md).

export type Num = number | null | undefined;

export interface Distribution { count: number; mean: Num; std: Num; min: Num; max: Num; p50: Num; p95: Num; p99: Num }

export interface Phase { phase: string; total_s: number; share: number; count: number; device_s: Num; mem_peak_mb: Num; gpu_mem_peak_mb: Num }

export interface Operation {
  name: string; path: string[]; kind: string; component: string | null; category: string | null; phase: string | null;
  file: string | null; line: Num; count: number; calls_per_s: Num; total_s: number; self_s: number;
  mean_ms: Num; std_ms: Num; min_ms: Num; max_ms: Num; p50_ms: Num; p95_ms: Num; p99_ms: Num;
  main_s: Num; main_self_s: Num; cpu_s: Num; mem_before_mb: Num; mem_after_mb: Num; mem_peak_mb: Num;
}

export interface Evidence { metric: string; value: number | string | null; unit: string | null; source: string | null }
export interface Bottleneck {
  id: string; severity: string; score: number; description: string; because: string[] | null;
  evidence: Evidence[] | null; recommendation: string | null;
  predicted_gain: { low: Num; mid: Num; high: Num; of?: string } | null; // of: "step" or "run"
}

export interface Series { unit: string | null; avg: Num; max: Num; min: Num; last: Num; samples: number; points: [number, number | null][]; points_max?: (number | null)[] }

export interface IoFile {
  path: string | null; class: string | null; reads: number; writes: number; read_bytes: number; write_bytes: number;
  read_s: number; write_s: number; opens: number; warm_share: Num; file_bytes: Num; processes: number;
  read_sequential_share: Num; mapped_bytes: Num; read_ms?: { p50: Num; p95: Num; p99: Num };
}

export interface Process {
  pid: number; ppid: number; role: string | null; rank: Num; phases: Phase[] | null; cpu_s: Num; peak_rss_mb: Num; peak_private_mb: Num;
  read_mb: Num; written_mb: Num; main: boolean; alive: boolean | null; exe: string | null; command: string | null; started: string | null;
  first_seen_s: Num; last_seen_s: Num; threads: Num; steps: Num; events: Num; lost: Num; exit_code: Num; exit_signal: Num; damage: string | null; zones_s: Num;
}

export interface AllocSite {
  function: string | null; file: string | null; line: Num; module: string | null; count: number; bytes: number;
  live_bytes: Num; peak_bytes: Num; mean_lifetime_s: Num; zone: string | null; bytes_per_s?: Num; bytes_per_step?: Num; live_count?: Num;
}

export interface HotFunction { name: string; file: string | null; line: Num; module?: string | null; self_s: Num; total_s: Num; share: Num; language?: string | null; main_self_s?: Num; main_total_s?: Num }
export interface HotLine { file: string | null; line: Num; function: string | null; self_s: Num; share: Num; language?: string | null; main_self_s?: Num; main_share?: Num }

export interface Provenance { metric: string; status: string; method: string | null; resolution: string | null }

export interface Report {
  schema: string;
  run: {
    id: string; name: string | null; command: string[]; started: string | null; duration_s: Num;
    exit: { code: Num; signal: string | null; cause: string | null }; death: { text: string; process: string | null; stack: string[] } | null;
    tags: Record<string, string>; params: Record<string, string>; metrics: Record<string, Num>;
    rank: Num; world_size: Num; state: string; host: string | null; cwd: string | null; level: string | null;
  };
  hardware: Record<string, unknown> | null;
  environment: Record<string, unknown> | null;
  summary: {
    verdict: string | null; why: string | null; bound_by: string | null; next?: string | null; step_ms: Distribution; optimizer_steps: Num; steps_per_s: Num; samples_per_s: Num; flops?: Num; syscalls?: Num; flops_per_step?: Num; flops_per_s?: Num;
    data_wait_share: Num; gpu_busy_share: Num; cpu_percent_avg: Num; peak_rss_mb: Num; overhead_percent: Num; overhead_mb: Num;
    events: number; lost: number; lost_reason: string | null; clock_error_ns: Num; supervisor_cpu_s: Num;
  };
  phases: Phase[];
  processes: Process[];
  epochs: Record<string, unknown>[];
  ranks: Record<string, unknown>[];
  operations: Operation[];
  operations_left_out: { count: number; self_s: number };
  functions: HotFunction[];
  lines: HotLine[];
  allocations: {
    count: Num; bytes: Num; peak_bytes: Num; frees?: Num; live_bytes?: Num; sites: AllocSite[]; leaks: AllocSite[];
    zones: { zone: string | null; count: number; bytes: number; frees: number; freed_bytes: number }[];
    sizes: { up_to: Num; count: number; bytes: number }[];
  } | null;
  io: { files: IoFile[]; file_count?: number; coverage: Num; zones?: { zone: string | null; reads: number; writes: number; read_bytes: number; write_bytes: number; read_s: number; write_s: number }[];
    read?: { calls: number; bytes: number; total_s: number }; write?: { calls: number; bytes: number; total_s: number } } | null;
  python: Record<string, unknown> | null;
  loaders?: Loader[] | null;
  energy: Record<string, unknown> | null;
  cost: Record<string, unknown> | null;
  gpu: Record<string, unknown> | null;
  monitors: Record<string, Series>;
  monitoring: { interval_s: Num; rounds: number };
  bottlenecks: Bottleneck[];
  recommendations: unknown[];
  alerts: unknown;
  hangs: unknown;
  open_zones: { pid: number; role: string; tid: number; thread: string | null; main: boolean; steps: number; silent_s: Num; zones: { name: string; file: string | null; line: Num; open_s: Num }[] }[];
  provenance: Provenance[];
  notes: string[];
}

// What loaders tell of themselves; its keys are shown as they come.
export type Loader = Record<string, unknown>;

export interface Lane {
  pid: number; tid: number; depth: number; zones: number; buckets: number; name: string; role: string;
  main: boolean; trains: boolean; partial: boolean; busy: Record<string, number[]>;
}

export interface Window {
  kind: string; step: number | null; start_s: number; end_s: number; left_out: number;
  lane: number[]; depth: number[]; site: number[]; begin_delta_ns: number[]; ns: number[];
}

export type SeenStep = [number, number, number];

export interface Timeline {
  duration_s: number; lanes: Lane[]; lanes_left_out: number; zones: number;
  steps: { count: number; per_point: number; points: number[][] };
  slowest: SeenStep[]; typical: SeenStep[]; windows: Window[];
}

export interface FlameTree {
  id: string; title: string; unit: string; note: string; levels: number; nodes: number; refused: number;
  parent: number[]; site: number[]; self: number[];
}

export interface Histogram { path: number[] | null; count: number; mean_ms: number; quantiles_ms: Num[]; bars: [number, number, number][] }

export type Site = [string, (string | null)?, string?, number?];

export interface Course { name: string; partial: boolean; steps: number[]; values: Num[] }

export interface Run { report: Report; timeline: Timeline; flame: FlameTree[]; distributions: Histogram[]; sites: Site[]; courses?: Course[] }

export interface Document { schema: string; sonde: string; hidden: boolean; runs: Run[] }
