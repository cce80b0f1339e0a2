"""What a malloc and its free cost with Sonde, or a peer, in front of them."""

from __future__ import annotations

from pathlib import Path

from places import QUICK, SONDE, Failed, environment, measure, memory, new_directory, program
from tables import Row, Table, Timing, timing

PASSES = 5 if QUICK else 11
PAIRS = 1_000_000 if QUICK else 5_000_000
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
HEAPTRACK = Path("/usr/lib/heaptrack/libheaptrack_preload.so")


def cells(t: Timing) -> list[str]:
    return [
        f"{t.floor.median:.2f}",
        f"{t.subject.median:.2f}",
        f"{t.over.median:.2f}",
        f"{t.over.low:.2f}–{t.over.high:.2f}",
        f"{t.subject.median / t.floor.median:.2f}",
        t.clock,
        f"{t.used}/{t.passes}",
    ]


def row_of(name: str, answer: dict, bar: float | None) -> Row:
    t = timing(answer)
    data = {"floor_ns": t.floor.median, "ns": t.subject.median, "over_ns": t.over.median}
    row = Row(name, cells(t), {**data, "measured": answer})
    row.noisy = t.noisy
    if bar is not None:
        row.bar, row.passed = f"≤ +{bar:.0f} ns", t.over.median <= bar
    return row


def under_sonde(name: str, bar: float | None, *options: str, **arguments) -> Row:
    try:
        with new_directory(memory()) as run:
            prefix = (SONDE, "run", "--quiet", "-o", run, *options, "--")
            answer = measure(
                program("heap"),
                prefix=prefix,
                **{"pairs": PAIRS, "passes": PASSES, **arguments},
            )
    except Failed as error:
        return Row(name, [], void=str(error))
    return row_of(name, answer, bar)


def with_library(name: str, library: Path, env: dict | None = None, **arguments) -> Row:
    """libc's functions, called directly, are the floor; the peer is what is preloaded."""
    if not library.exists():
        return Row(name, [], skipped=f"no {library}")
    try:
        with new_directory(memory()) as place:
            changes = {k: v.format(place=place) for k, v in (env or {}).items()}
            answer = measure(
                program("heap"),
                env=environment(LD_PRELOAD=str(library), **changes),
                **{"pairs": PAIRS // 10, "passes": 3, **arguments},
            )
    except Failed as error:
        return Row(name, [], skipped=f"it failed: {error}")
    return row_of(name, answer, None)


def bare(name: str, **arguments) -> Row:
    answer = measure(
        program("heap"), **{"pairs": PAIRS, "passes": PASSES, **arguments}
    )
    return row_of(name, answer, None)


def heap() -> Table:
    table = Table(
        "heap",
        "A malloc and its free, ns; floor: libc's own in the same process",
        ["libc", "with it", "over", "spread", "× libc", "clock", "passes"],
    )
    tcmalloc = LIBRARIES / "libtcmalloc.so.4"
    heaptrack = {"DUMP_HEAPTRACK_OUTPUT": "{place}/heaptrack"}
    table.rows = [
        bare("nothing in front"),
        under_sonde("--no-preload", None, "--no-preload"),
        under_sonde("counts alone (--no-sites)", 3, "--no-sites"),
        under_sonde("counts, freed bytes", 6),
        under_sonde("… and sampled sites (the default)", 10),
        under_sonde("… 64 Ki random blocks held", None, form="random", pairs=PAIRS // 5),
        under_sonde("every event", 30, "--trace", "alloc"),
        under_sonde("every event, stacks", 100, "--level", "comprehensive"),
        under_sonde("… 24 calls deep", 100, "--level", "comprehensive", form="deep"),
        with_library("tcmalloc alone", tcmalloc),
        with_library(
            "… sampled sites, 512 KiB", tcmalloc, {"TCMALLOC_SAMPLE_PARAMETER": "524288"}
        ),
        with_library("… heap profiler", tcmalloc, {"HEAPPROFILE": "{place}/profile"}),
        with_library("heaptrack, every event, stacks", HEAPTRACK, heaptrack),
        with_library("… 24 calls deep", HEAPTRACK, heaptrack, form="deep"),
    ]
    table.note = (
        "16 B to 1 KiB, freed at once, unless it says otherwise. Counts, freed bytes and "
        "sampled sites are one and the same: the two rows are looked at together. "
        "Every event reads the clock twice: 19 of its ns where rdtsc takes 9.65. "
        "tcmalloc is another allocator: its rows compare with each other. "
        "memray wants Python; its published costs are in BUDGETS."
    )
    return table
