"""On a machine with a GPU: python3 tests/gpu/check.py SONDE PYTHON

Runs the programs beside this file bare and under `sonde run` and compares. Not part of
`make test`: CI has no GPU. Prints what was seen; exit 1 when something is wrong.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SONDE, PYTHON = sys.argv[1], sys.argv[2]
wrong = []


def expect(ok, what):
    print("ok   " if ok else "WRONG", what, flush=True)
    if not ok:
        wrong.append(what)


def call(*words):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-3000:])
    return done


def run(folder, *words):
    done = call(SONDE, "run", "-q", "-o", folder, "--", PYTHON, *words)
    answer = json.loads(call(SONDE, "report", folder, "--json").stdout)
    for line in (Path(folder) / "python.jsonl").read_text().splitlines():
        if "problem" in line:
            expect(False, line)
    return done, answer


def check_phases(folder):
    bare = json.loads(call(PYTHON, HERE / "phases.py").stdout)
    done, answer = run(folder, HERE / "phases.py")
    truth = json.loads(done.stdout)
    phases = {p["phase"]: p for p in answer["phases"]}
    paths = [(o["name"], o["phase"], o["file"], o["line"], o["count"]) for o in answer["operations"]]
    for name in sorted({"forward", "backward", "gradient", "optimizer"} & set(truth["device"])):
        own = truth["device"][name]
        print(f"     {name}: own events {own * 1e3:.1f} ms, device_s {phases[name]['device_s']}, host {phases[name]['total_s']}")
    # Other forwards come besides (warm-up, waits): those are at most as long each.
    for name, calls in (("backward", 31), ("gradient", 30), ("optimizer", None)):
        own, seen = truth["device"][name], phases[name]["device_s"] or 0
        expected = own * (calls / 30) if calls else own
        expect(abs(seen - expected) < 0.10 * expected or name == "optimizer", f"device time of {name}: {seen:.4f} for {expected:.4f}")
    print(f"     host {truth['host_s']:.3f} of {truth['all_s']:.3f} s, bare {bare['host_s']:.3f} of {bare['all_s']:.3f} s")
    ahead = lambda t: t["all_s"] - t["host_s"]  # noqa: E731  the device's work left
    expect(ahead(truth) > 0.7 * ahead(bare), "the host stays as far ahead of the device")
    expect(truth["graph_right"], "a captured graph gives the right answer")
    for name, at in truth["lines"].items():
        phase = "transfer" if name == "transfer" else "sync"
        zone = {"transfer": "to", "print": None}.get(name, name)
        found = [p for p in paths if p[1] == phase and p[3] == at and (zone is None or p[0] == zone)]
        expect(bool(found), f"{name}: {phase} at line {at}: {[(p[0], p[4]) for p in found]}")
    wrong_ones = [p for p in paths if p[1] == "sync" and p[2] and "/torch/" in p[2]]
    expect(not wrong_ones, f"no wait is blamed on torch's own lines {wrong_ones[:3]}")


def check_compiled(folder):
    bare = call(PYTHON, HERE / "compiled.py", "cuda")
    done, _ = run(folder, HERE / "compiled.py", "cuda")
    expect(done.returncode == 0 and done.stdout == bare.stdout, "compiled: same graphs, breaks, recompiles, results")
    if done.stdout != bare.stdout:
        print(bare.stdout[:1500], "----", done.stdout[:1500])


def check_inductor(folder):
    bare = call(PYTHON, HERE / "inductor.py")
    done, answer = run(folder, HERE / "inductor.py")
    expect(done.returncode == 0 and done.stdout == bare.stdout, f"inductor, fullgraph: {done.stdout.strip()}")
    counts = {p["phase"]: p["count"] for p in answer["phases"]}
    print("     ", counts, answer["summary"]["step_ms"]["count"], answer["summary"]["optimizer_steps"])


with tempfile.TemporaryDirectory() as folder:
    for check in (check_phases, check_compiled, check_inductor):
        check(Path(folder) / check.__name__)
print("wrong:", len(wrong))
sys.exit(bool(wrong))
