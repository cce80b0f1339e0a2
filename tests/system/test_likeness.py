"""Likeness: near what Gower's distance says, steady under noise, the same bytes everywhere."""

import json
import random
import shutil
import subprocess

import pytest
from sonde_test import SOURCE, environment, sonde

numpy = pytest.importorskip("numpy")

COUNT, NEAREST, QUERIES = 1500, 10, 200


def experiments(seed, count=COUNT):
    """Campaigns as people run them: around a few good points, some names missing."""
    r = random.Random(seed)
    centres = [
        {
            "lr": 10 ** r.uniform(-5, -1),
            "batch": r.choice([16, 32, 64, 128, 256]),
            "layers": r.randint(2, 24),
            "dropout": r.uniform(0, 0.5),
            "optimizer": r.choice(["adam", "sgd", "adamw", "lamb"]),
            "schedule": r.choice(["cosine", "linear", "step"]),
            "amp": r.random() < 0.5,
        }
        for _ in range(12)
    ]
    made = []
    for number in range(count):
        p = dict(r.choice(centres))
        p["lr"] *= 10 ** r.gauss(0, 0.4)
        p["dropout"] = min(0.6, max(0.0, p["dropout"] + r.gauss(0, 0.08)))
        p["layers"] = max(1, p["layers"] + r.randint(-3, 3))
        if r.random() < 0.3:
            p["batch"] = r.choice([16, 32, 64, 128, 256])
        if r.random() < 0.2:
            p["optimizer"] = r.choice(["adam", "sgd", "adamw", "lamb"])
        if r.random() < 0.15:
            p["warmup"] = r.randint(0, 1000)
        accuracy = max(0.0, min(1.0, 0.9 - abs(p["dropout"] - 0.2) + r.gauss(0, 0.05)))
        made.append(
            {
                "id": f"e{number:05d}",
                "params": p,
                "metrics": {"accuracy": accuracy, "loss": r.expovariate(1)},
                "duration_s": r.expovariate(1 / 300) + 5,
                "memory_peak_mb": 200 + 40 * p["layers"] + p["batch"] * r.uniform(1, 4),
            }
        )
    return made


def flat(e):
    fields = {f"params.{k}": v for k, v in e["params"].items()}
    fields.update({f"metrics.{k}": v for k, v in e["metrics"].items()})
    fields.update({k: e[k] for k in ("duration_s", "memory_peak_mb")})
    return fields


def gower(made):
    """The distances by the definition: mean over names both have of |x − y| / range, or of
    0 and 1 for texts; numbers over three decades by their logarithm."""
    rows = [flat(e) for e in made]
    names = sorted({name for row in rows for name in row})
    total = numpy.zeros((len(rows), len(rows)))
    weight = numpy.zeros_like(total)
    for name in names:
        values = [row.get(name) for row in rows]
        known = numpy.array([v is not None for v in values])
        if all(isinstance(v, (str, bool)) for v in values if v is not None):
            codes = {v: i for i, v in enumerate(sorted({str(v) for v in values}))}
            x = numpy.array([codes[str(v)] for v in values], float)
            d = (x[:, None] != x[None, :]).astype(float)
        else:
            x = numpy.array([v if v is not None else numpy.nan for v in values], float)
            if numpy.nanmin(x) > 0 and numpy.nanmax(x) / numpy.nanmin(x) >= 1000:
                x = numpy.log(x)
            d = abs(x[:, None] - x[None, :]) / (numpy.nanmax(x) - numpy.nanmin(x))
        both = known[:, None] & known[None, :]
        total += numpy.where(both, numpy.nan_to_num(d), 0)
        weight += both
    return total / weight


def vectors(directory, made):
    env = environment(SONDE_DIR=directory)
    lines = "\n".join(json.dumps(e) for e in made)
    sonde("log", "--jsonl", "-", "--quiet", input=lines, env=env)
    answer = json.loads(
        sonde("search", "--all", "--json", "--vectors", "--sort", "id", "--ascending", env=env).stdout
    )
    found = answer["experiments"]
    assert [e["id"] for e in found] == [e["id"] for e in made]
    return numpy.array([e["vector"] for e in found], numpy.int64)


def squared(v):
    norms = (v * v).sum(1)
    return norms[:, None] + norms[None, :] - 2 * v @ v.T


def neighbours(distances, query):
    row = distances[query].astype(float).copy()
    row[query] = numpy.inf
    return set(numpy.argsort(row, kind="stable")[:NEAREST])


def overlap(a, b):
    step = COUNT // QUERIES
    shares = [
        len(neighbours(a, q) & neighbours(b, q)) / NEAREST for q in range(0, COUNT, step)
    ]
    return sum(shares) / len(shares)


def test_neighbours_are_gowers(tmp_path):
    made = experiments(1)
    share = overlap(squared(vectors(tmp_path / "s", made)), gower(made))
    print(f"overlap@10 with Gower: {share:.3f}")
    assert share >= 0.70


def test_noise_moves_few_neighbours(tmp_path):
    """5 % on every metric: no more neighbours change than Gower's own do, but for a few."""
    made = experiments(2)
    r = random.Random(3)
    noisy = json.loads(json.dumps(made))
    for e in noisy:
        for key in e["metrics"]:
            e["metrics"][key] *= 1 + r.gauss(0, 0.05)
    ours = overlap(
        squared(vectors(tmp_path / "a", made)), squared(vectors(tmp_path / "b", noisy))
    )
    gowers = overlap(gower(made), gower(noisy))
    print(f"overlap@10 under noise: {ours:.3f}, Gower's own {gowers:.3f}")
    assert ours >= gowers - 0.05 and ours >= 0.6


def test_the_command_finds_the_nearest_vectors(tmp_path):
    made = experiments(4, 400)
    distances = squared(vectors(tmp_path / "s", made))
    env = environment(SONDE_DIR=tmp_path / "s")
    for query in (0, 57, 399):
        answer = json.loads(
            sonde("search", "--like", f"e{query:05d}", "--json", "--explain", env=env).stdout
        )
        found = [int(e["id"][1:]) for e in answer["experiments"]]
        best = sorted(distances[query][i] for i in range(400) if i != query)[:10]
        assert [distances[query][i] for i in found] == best
        assert query not in found
        why = {w["name"]: w for w in answer["experiments"][0]["why"]}
        assert why["params.optimizer"]["query"] == made[query]["params"]["optimizer"]


# Everything the bytes depend on, without the rest of Sonde.
PARTS = ["search/embed.c", "search/space.c", "search/segment.c", "search/segbuild.c"] + [
    "store/value.c", "store/experiment.c", "store/jread.c", "base/arena.c", "base/buf.c",
    "base/strmap.c", "base/json.c", "base/redact.c", "base/error.c", "trace/crc32c.c",
]  # fmt: skip
STUB = "const char *iso_time(long long ns, char *text);\nconst char *iso_time(long long ns, char *text)\n{ (void)ns; return text; }\n"


@pytest.mark.parametrize(
    "compiler, flags",
    [
        ("gcc", ["-O0"]),
        ("gcc", ["-O3", "-march=native"]),
        ("clang", ["-O3", "-march=native", "-ffp-contract=fast"]),
    ],
)
def test_the_bytes_are_the_same_whoever_compiles(tmp_path, compiler, flags):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    (tmp_path / "stub.c").write_text(STUB)
    source = SOURCE / "src"
    words = [compiler, "-std=gnu17", "-D_GNU_SOURCE", *flags, f"-I{source}", "-o", "bytes"]
    words += [f"-I{SOURCE / 'include'}", SOURCE / "tests" / "system" / "embedding_bytes.c", "stub.c"]
    words += [source / part for part in PARTS]
    subprocess.run([*words, "-lpthread", "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "bytes"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2000 vectors e6bc5b0d"
