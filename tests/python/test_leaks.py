# timeout: 600
"""Ten million zones later the process is as large as before."""

import sys

import pytest
from conftest import python

SCRIPT = """
import asyncio, gc, os, sys, sonde

def own_mb():
    # The trace is a mapped file, bounded by itself: not counted here.
    with open("/proc/self/status") as f:
        (line,) = [line for line in f if line.startswith("RssAnon")]
    return int(line.split()[1]) / 1024

@sonde.profile
def f(x): return x

@sonde.profile
def g():
    yield 1

@sonde.profile
async def c():
    with sonde.zone("in"):
        await asyncio.sleep(0)

def zones(n):
    z = sonde.zone("z")
    for i in range(n):
        with z: pass
        with sonde.zone("inline"): pass
        with sonde.zone("kw", phase="forward", a=1): pass
        sonde.begin("b"); sonde.end()
        f(i)

def rest(n):
    async def many():
        for _ in range(n): await c()
    asyncio.run(many())
    for _ in range(n):
        list(g())
        with sonde.operation("op") as op:
            op.metrics["x"] = 1.0
    try:
        sonde.zone("x", phase="nonsense")
    except ValueError:
        pass

def everything(n):
    zones(n); rest(n // 100)

recorded = sys.argv[1] == "on"
if recorded:
    sonde.session(output=sys.argv[2], max_trace=32 << 20,
                  enable_performance_monitoring=False, generate_reports=False,
                  memory_snapshots=False).start()
everything(20_000)
zone = sonde.zone("z")
gc.collect()
blocks, refs, before = sys.getallocatedblocks(), sys.getrefcount(zone), own_mb()
everything(int(sys.argv[3]))
gc.collect()
grown, more = own_mb() - before, sys.getallocatedblocks() - blocks
assert grown < 4, f"{grown:.1f} MiB more"
assert more < 500, f"{more} blocks more"
assert sys.getrefcount(zone) == refs
print(f"{grown:.1f} MiB, {more} blocks")
"""


def check(tmp_path, state, count, interpreter_options=()):
    script = tmp_path / "s.py"
    script.write_text(SCRIPT)
    python(*interpreter_options, script, state, tmp_path / "run", count, timeout=300)


def test_no_growth_while_recording(tmp_path):
    check(tmp_path, "on", 2_000_000)  # five zones each


def test_no_growth_while_off(tmp_path):
    check(tmp_path, "off", 400_000)


REFERENCES = """
import asyncio, gc, sys, sonde

@sonde.profile
def f(x): return x

@sonde.profile
def g(): yield 1

@sonde.profile
async def c():
    with sonde.zone("in"): await asyncio.sleep(0)

@sonde.profile
async def a():
    yield 1

def refused(call, *args, **more):
    try:
        call(*args, **more)
    except (TypeError, ValueError):
        pass

def everything(n):
    z = sonde.zone("z")
    for i in range(n):
        with z, sonde.zone("a", phase="forward", t=1), sonde.zone("b"): f(i)
        sonde.begin("b"); sonde.end()
        list(g())
        with sonde.operation("o", component="k", t=1) as op: op.metrics["x"] = 1
        refused(sonde.zone, "q", phase="no")
        refused(sonde.zone, "q", component=3)
        refused(sonde.end, 3)
        refused(sonde.Zone)
        @sonde.profile
        def local(): pass
        local()
        sonde.value("v", 1); sonde.counter("c", 1); sonde.metric("m", 1); sonde.mark("m")
        sonde.step(3); sonde.tag("t", i % 2); sonde.param("p", 1)
        span = sonde.Span(z); span.begin(); span.suspend(); span.end()
    async def many():
        for _ in range(n):
            await c()
            assert [x async for x in a()] == [1]
    asyncio.run(many())

sonde.session(output=sys.argv[1], enable_performance_monitoring=False,
              generate_reports=False, memory_snapshots=False).start()
everything(100)
counts = []
for n in (100, 1000):
    gc.collect()
    before = sys.gettotalrefcount()
    everything(n)
    gc.collect()
    counts.append(sys.gettotalrefcount() - before)
assert abs(counts[1] - counts[0]) < 100, counts
print(counts)
"""


@pytest.mark.skipif(
    not hasattr(sys, "gettotalrefcount"), reason="not a debug build of Python"
)
def test_a_debug_interpreter_counts_no_reference_more(tmp_path):
    script = tmp_path / "s.py"
    script.write_text(REFERENCES)
    python(script, tmp_path / "run", timeout=300)


def test_the_development_mode_finds_nothing(tmp_path):
    """Debug hooks on the allocators, warnings for what is not closed."""
    check(tmp_path, "on", 2_000, ("-X", "dev", "-W", "error"))
