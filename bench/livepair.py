"""Two programs that do the same work, alive at once, running in turns.

Started one after the other a loop takes 10 % more or less each time: the machine drifts,
clocks and neighbours change. Here both are started, and stopped; then one of them runs for
a second while the other stands still, in the order A B B A, so that whatever changes
more slowly than that weighs on both alike. What is stopped and continued (SIGSTOP, SIGCONT)
is the whole tree of processes: workers, and a profiler's own processes, which compete for
the cores only while their program runs, as they do in earnest.

Nothing is left out of the count. A side's clock goes while it runs; a step that was cut by
a stop goes on afterwards. What a profiler does by the wall clock (a sample a second) it does
here twice as often as the program's clock sees it: that errs to its disadvantage.
"""

from __future__ import annotations

import math
import mmap
import os
import signal
import statistics
import subprocess
import tempfile
import time
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

WINDOW_S, WARM_S, START_S, END_S = 1.0, 1.0, 90.0, 40.0
MOST_STEPS = 100_000
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Stamps:
    """A file of doubles: [0] not 0 means "end", [i] is when step i ended."""

    def __init__(self, folder: str):
        fd, self.path = tempfile.mkstemp(dir=folder, prefix="stamps-")
        os.truncate(fd, 8 * (MOST_STEPS + 1))
        self.values = memoryview(mmap.mmap(fd, 0)).cast("d")
        os.close(fd)
        self.count = 0

    def new(self) -> int:
        while self.count < MOST_STEPS and self.values[self.count + 1]:
            self.count += 1
        return self.count

    def all(self) -> list[float]:
        return list(self.values[1 : self.new() + 1])


def processes() -> dict[int, tuple[int, int, int]]:
    """pid -> parent, session, ticks of CPU time, of everything there is."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = Path(f"/proc/{name}/stat").read_text()
        except OSError:
            continue
        rest = text.rpartition(")")[2].split()
        found[int(name)] = int(rest[1]), int(rest[3]), int(rest[11]) + int(rest[12])
    return found


@dataclass
class Side:
    """One of the two: a command and all its processes."""

    command: list[str]
    env: dict[str, str]
    folder: str
    began: list[float] = field(default_factory=list)  # windows, by the clock of stamps
    ended: list[float] = field(default_factory=list)
    start_s = end_s = math.nan

    def __post_init__(self) -> None:
        self.stamps = Stamps(self.folder)
        self.output = open(f"{self.stamps.path}.out", "w+")  # noqa: SIM115
        self.at = time.perf_counter()
        self.process = subprocess.Popen(
            [*map(str, self.command), self.stamps.path],
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            env=self.env,
            start_new_session=True,
        )
        self.known = [self.process.pid]

    # ---- its processes ----

    def tree(self) -> dict[int, int]:
        """pid -> CPU ticks of those in its session or born of them."""
        table, found = processes(), {}
        pids = sorted(table, key=lambda p: (p != self.process.pid, p))
        more = True
        while more:
            more = False
            for pid in pids:
                parent, session, ticks = table[pid]
                ours = session == self.process.pid or parent in found
                if ours and pid not in found:
                    found[pid] = ticks
                    more = True
        return found

    def signal_all(self, number: int) -> None:
        for pid in self.known:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def stop(self) -> None:
        """Those known at once; whoever was born meanwhile afterwards, off the clock."""
        self.ended.append(time.perf_counter())
        self.signal_all(signal.SIGSTOP)
        while True:
            now = list(self.tree())
            if set(now) <= set(self.known):
                break
            self.known = now
            self.signal_all(signal.SIGSTOP)
        self.known = now

    def go(self) -> None:
        self.began.append(time.perf_counter())
        self.signal_all(signal.SIGCONT)

    def cpu_s(self) -> float:
        return sum(self.tree().values()) * TICK_S

    # ---- its life ----

    def last_words(self) -> str:
        self.output.seek(0)
        lines = self.output.read().strip().splitlines()
        return lines[-1][:100] if lines else "it ended without a word"

    def warm_up(self, warm_s: float = WARM_S) -> None:
        """Until it has made steps for so long; then it stands still."""
        limit = self.at + START_S
        while time.perf_counter() < limit and self.process.poll() is None:
            time.sleep(0.02)
            if self.stamps.new() and self.stamps.values[1] + warm_s < time.perf_counter():
                break
        else:
            raise RuntimeError(self.last_words())
        self.start_s = self.stamps.values[1] - self.at
        self.began.append(self.at)
        self.stop()

    def run_window(self) -> None:
        self.go()
        time.sleep(WINDOW_S)
        self.stop()
        if self.process.poll() is not None:
            raise RuntimeError(self.last_words())

    def end(self) -> None:
        self.stamps.values[0] = 1
        start = time.perf_counter()
        self.go()
        try:
            if self.process.wait(timeout=END_S):
                raise RuntimeError(self.last_words())
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"it did not end within {END_S:.0f} s") from error
        self.ended.append(time.perf_counter())
        self.end_s = self.ended[-1] - start

    def kill(self) -> None:
        """Whatever is left of it."""
        self.known = list(self.tree())
        self.signal_all(signal.SIGKILL)
        self.process.wait()
        self.output.close()


# ---- what a side did -------------------------------------------------------------------


class Course:
    """How far a side was at each moment of its own clock, which stands while it does."""

    def __init__(self, side: Side):
        self.starts = [0.0]
        for began, ended in zip(side.began, side.ended):
            self.starts.append(self.starts[-1] + ended - began)
        self.stamps = []
        for t in side.stamps.all():
            w = min(bisect_right(side.began, t), len(side.ended)) - 1
            inside = min(t, side.ended[w]) - side.began[w]
            self.stamps.append(self.starts[w] + inside)

    def steps(self, t: float) -> float:
        i = bisect_right(self.stamps, t)
        if i == 0 or i == len(self.stamps):
            return float(i)
        before, after = self.stamps[i - 1], self.stamps[i]
        return i + (t - before) / (after - before if after > before else 1)

    def step_s(self, windows: range) -> float:
        """Mean time of a step in these windows, cut ones counted by their part."""
        spent = done = 0.0
        for w in windows:
            spent += self.starts[w + 1] - self.starts[w]
            done += self.steps(self.starts[w + 1]) - self.steps(self.starts[w])
        return spent / done if done > 0 else math.inf

    def median_s(self, windows: range) -> float:
        """Median step of these windows."""
        begin, end = self.starts[windows.start], self.starts[windows.stop]
        since = [s for s in self.stamps if begin < s <= end]
        if len(since) < 2:
            raise RuntimeError("too few steps in its turns: a busy machine")
        return statistics.median(b - a for a, b in zip(since, since[1:]))


@dataclass
class Pair:
    """What one pair of processes said, the second side against the first."""

    ratio: float  # of mean step times, everything counted
    median: float  # of median step times
    cpu: float  # of CPU time a step, of all processes of a side
    blocks: list[float]  # ratio in each A B B A
    step_s: float  # of the first side
    around_s: float  # more time before and after the loop


def compare(sides: list[Side], cpu_s: list[float], blocks: int) -> Pair:
    a, b = (Course(s) for s in sides)
    windows = range(1, 1 + 2 * blocks)  # 0 was the warm-up
    parts = [range(1 + 2 * i, 3 + 2 * i) for i in range(blocks)]
    made = [c.steps(c.starts[windows.stop]) - c.steps(c.starts[1]) for c in (a, b)]
    around = [s.start_s + s.end_s for s in sides]
    return Pair(
        b.step_s(windows) / a.step_s(windows),
        b.median_s(windows) / a.median_s(windows),
        (cpu_s[1] / made[1]) / (cpu_s[0] / made[0]),
        [b.step_s(p) / a.step_s(p) for p in parts],
        a.step_s(windows),
        around[1] - around[0],
    )


def run_pair(
    commands: list[list[object]],
    env: dict[str, str],
    blocks: int,
    number: int,
    warm_s: float = WARM_S,
) -> Pair:
    """commands: alone, with. Who starts first, and who begins, changes with the number.

    A long warm-up is made by both at once, so their starts are not to be compared.
    """
    with tempfile.TemporaryDirectory(prefix="sonde-bench-", dir="/dev/shm") as folder:
        sides: list[Side] = []
        order = [0, 1] if number % 2 == 0 else [1, 0]
        try:
            by_index: dict[int, Side] = {}
            for i in order:
                by_index[i] = Side(list(map(str, commands[i])), env, folder)
                sides.append(by_index[i])
                if warm_s == WARM_S:
                    by_index[i].warm_up()
            for i in order if warm_s != WARM_S else ():
                by_index[i].warm_up(warm_s)
            before = [by_index[i].cpu_s() for i in (0, 1)]
            first, second = by_index[order[0]], by_index[order[1]]
            for _ in range(blocks):
                for side in (first, second, second, first):
                    side.run_window()
            cpu = [by_index[i].cpu_s() - before[i] for i in (0, 1)]
            for side in sides:
                side.end()
            return compare([by_index[0], by_index[1]], cpu, blocks)
        finally:
            for side in sides:
                side.kill()


# ---- what many pairs say ----------------------------------------------------------------


def signed_rank_cut(n: int, level: float = 0.95) -> int:
    """How many Walsh averages lie outside the exact interval on each side."""
    counts = [1]
    for k in range(1, n + 1):
        counts = [
            (counts[s] if s < len(counts) else 0)
            + (counts[s - k] if 0 <= s - k < len(counts) else 0)
            for s in range(len(counts) + k)
        ]
    tail, total, limit = 0, 2**n, (1 - level) / 2
    for cut, count in enumerate(counts):
        tail += count
        if tail / total > limit:
            return cut
    return 0


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """Hodges–Lehmann estimate of the ratio with its exact 95 % signed-rank interval."""
    logs = [math.log(r) for r in ratios]
    walsh = sorted((a + b) / 2 for i, a in enumerate(logs) for b in logs[i:])
    cut = signed_rank_cut(len(logs))
    low, high = walsh[max(0, cut - 1)] if cut else walsh[0], walsh[-max(1, cut)]
    return math.exp(statistics.median(walsh)), math.exp(low), math.exp(high)
