# labels: no_asan
"""sonde flops, sonde model, sonde scale: what they say is true, and mistakes are told."""

import gzip
import json
import sys
from xml.etree import ElementTree

import pytest
from sonde_test import environment, program, report, run, sonde

# Debian's interpreter: the one that has torch.
PYTHON = environment(SONDE_PYTHON_COMMAND="/usr/bin/python3")
SMALL = ("--hidden-dim", 32, "--num-layers", 2, "--num-heads", 4, "--num-nodes", 60)
STEADY = ("--threads", 1, "--cpu-time")  # other programs on this machine do not count
QUICK = ("--num-runs", 3, "--warmup-runs", 1, "--threads", 1)


def answer(*arguments, **options):
    return json.loads(sonde(*arguments, "--json", **options).stdout)


# ---- Formulas ---------------------------------------------------------------------------


def test_published_models_are_met():
    models = {m["name"]: m for m in answer("flops", "--list")["models"]}
    assert round(models["vit_b_16"]["gmacs"], 4) == 17.5638
    assert round(models["resnet50"]["gmacs"], 5) == 4.08918
    assert round(2 * models["gpt2_124m"]["gmacs"], 2) == 291.65
    assert round(models["bert_base"]["gmacs"], 3) == 11.174
    assert all(m["parameters"] == m["published_parameters"] for m in models.values())
    assert len(models) >= 10


def test_flops_as_the_document_wants_them():
    a = answer("flops", "--num_nodes", 1000, "--hidden_dim", 512, "--num_layers", 12)
    assert a["schema"] == "sonde.model/1" and a["timestamp"].endswith("Z")
    assert {"cpu", "cores", "cuda_available"} <= a["hardware"].keys()
    assert a["model_info"]["hidden_dim"] == 512 and a["model_info"]["num_layers"] == 12
    parts = a["flops"]["breakdown"]
    assert sum(parts.values()) == pytest.approx(a["flops"]["total_gflops"])
    attention = 12 * 2 * (4 * 1000 * 512**2 + 2 * 1000**2 * 512)
    assert attention < parts["attention"] * 1e9 < 1.1 * attention
    assert {"parameters", "activations", "gradients", "optimizer_state"} <= a["memory"]["breakdown"].keys()
    assert a["memory"]["breakdown"]["parameters"] == pytest.approx(a["model_info"]["parameter_memory_mb"])


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["flops", "--hidden-dim", "0"], "--hidden-dim must lie between 1"),
        (["flops", "--hidden-dim", "-4"], "a whole number"),
        (["flops", "--num_heads", "7"], "--num-heads 7 does not divide --hidden-dim 256 (8 would)"),
        (["flops", "resnet"], "did you mean 'resnet50'"),
        (["flops", "--mpnn", "gim"], "--mpnn wants"),
        (["flops", "a", "b"], "one model at a time"),
        (["model", "--num-nodes", "0"], "--num-nodes must lie between 1"),
        (["model", "--model", "resnet50"], "FILE.py:FACTORY"),
        (["model", "--profile", "speed"], "--profile wants"),
        (["model", "--dataset", "nowhere"], "there is no folder 'nowhere'"),
        (["model", "--num-nodes", "900000"], "more than 80 %"),
        (["model", "--num-runs", "0"], "--num-runs"),
        (["model", "--mpnn", "pnas"], "--mpnn wants"),
        (["model", "--dropout", "1"], "--dropout wants a number from 0 to below 1"),
        (["model", "--dropout", "-0.1"], "--dropout wants"),
        (["model", "--dropout", "much"], "--dropout wants"),
        (["scale", "layers", "--dropout", "nan"], "--dropout wants"),
        (["model", "--model", "nowhere.py:f"], "cannot read 'nowhere.py'"),
        (["model", "--model", "nowhere.py"], "which function"),
        (["model", "--pe", "lap", "--pe-dim", "0"], "--pe and --pe-dim go together"),
        (["scale", "nodes", "--optimizer", "x"], "--optimizer wants"),
        (["model", "--model", "setup.py:f", "--optimizer", "x"], "--optimizer wants"),
        (["model", "--model", "setup.py:f", "--num-nodes", "0"], "--num-nodes must be 1 or more"),
        (["model", "--model", "setup.py:f", "--dataset", "x"], "let FACTORY return"),
        (["scale"], "along which axis"),
        (["scale", "width"], "there is no axis 'width'"),
        (["scale", "nodes", "x"], "'x' is not a size"),
        (["scale", "heads", "3"], "does not divide"),
        (["scale", "nodes", "--model", "mlp"], "no such axis"),
        (["scale", "nodes", "--model", "gpt2"], "no such axis"),
        (["scale", "pe", "lup:4"], "'lup:4' is not a size"),
    ],
    ids=lambda a: " ".join(a) if isinstance(a, list) else None,
)
def test_mistakes_are_told_and_nothing_is_written(tmp_path, arguments, words):
    done = sonde(*arguments, "-o", tmp_path / "out", check=False)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == "" and list(tmp_path.iterdir()) == []


ENDLESS = ("--budget", "9h", "--num-runs", 10**9)


@pytest.mark.parametrize("verb", [["model", *ENDLESS], ["scale", "nodes", *ENDLESS], ["flops"]], ids=str)
def test_where_nothing_can_be_written_nothing_is_run(tmp_path, verb):
    for place in (tmp_path / "nowhere" / "out", tmp_path):
        done = sonde(*verb, "-o", place, check=False)
        assert done.returncode == 2 and "cannot write" in done.stderr and done.stdout == ""
    assert list(tmp_path.iterdir()) == []


# ---- Measuring -----------------------------------------------------------------------------


def test_a_model_is_measured(tmp_path):
    file = tmp_path / "model.json"
    sonde("model", *SMALL, *QUICK, "--json", "-o", file, "--profile", "runtime", "memory", "flops")
    a = json.loads(file.read_text())
    for name in ("inference", "forward", "backward", "training_step"):
        stats = a["runtime"][name]
        assert stats["num_runs"] == 3 and stats["unit"] == "ms"
        assert 0 < stats["min"] <= stats["p50"] <= stats["max"]
    step = a["runtime"]["training_step"]["mean"]
    both = a["runtime"]["forward"]["mean"] + a["runtime"]["backward"]["mean"]
    assert both < step
    roof = a["roofline"]
    assert roof["mfu"] > 0 and roof["peak_bytes_per_s"] > 1e8
    parts = {p["name"]: p for p in roof["parts"]}
    assert sum(p["share"] for p in parts.values()) <= 1.02
    assert parts["optimizer"]["bound_by"] == "memory"
    assert a["runtime"]["last_loss"] < a["runtime"]["first_loss"]
    assert oct(file.stat().st_mode & 0o777) == "0o600"


def last_loss(*arguments):
    a = answer("model", *SMALL, "--num-runs", 3, "--warmup-runs", 1, "--threads", 1, *arguments)
    return a["runtime"]["last_loss"], a["model_info"]["dropout"]


def test_dropout_follows_the_seed():
    plain = last_loss()
    dropped, again = last_loss("--dropout", 0.3), last_loss("--dropout", 0.3)
    assert dropped == again and dropped[1] == 0.3
    assert plain[1] == 0 and plain[0] != dropped[0]
    assert last_loss("--dropout", 0.3, "--seed", 7)[0] != dropped[0]


def test_only_what_was_asked_for():
    a = answer("model", *SMALL, "--profile", "flops")
    assert "flops" in a and "runtime" not in a and "memory" not in a
    a = answer("model", *SMALL, *QUICK, "--profile", "memory")
    assert "memory" in a and "runtime" not in a and "flops" not in a
    assert a["memory"]["peak_mb"] > 0


# Predicted without running, measured by the interposer on the heap.
CONFIGS = [
    ("graph_transformer", dict(hidden=64, layers=4, nodes=300)),
    ("graph_transformer", dict(hidden=128, layers=2, heads=4, nodes=500, message="gcn")),
    ("graph_transformer", dict(hidden=64, layers=3, nodes=700, message="none")),
    ("graph_transformer", dict(hidden=96, layers=2, heads=12, nodes=400, message="sage")),
    ("graph_transformer", dict(hidden=256, layers=2, nodes=100, batch=4)),
    ("graph_transformer", dict(hidden=64, layers=6, heads=1, nodes=200, batch=3, ffn=512)),
    ("graph_transformer", dict(hidden=128, layers=2, nodes=300, dropout=0.1)),
    ("graph_transformer", dict(hidden=64, layers=3, nodes=300, degree=20, message="gine")),
    ("graph_transformer", dict(hidden=128, layers=2, nodes=250, degree=9, message="gat")),
    ("graph_transformer", dict(hidden=64, layers=4, nodes=300, degree=15, message="gatedgcn")),
    ("graph_transformer", dict(hidden=64, layers=2, nodes=200, degree=20, message="pna")),
    ("gpt2", dict(hidden=64, layers=4, tokens=128, batch=4)),
    ("gpt2", dict(hidden=192, layers=3, heads=6, tokens=64, batch=8)),
    ("gpt2", dict(hidden=128, layers=2, heads=2, tokens=256, batch=2)),
    ("mlp", dict(hidden=512, layers=4, batch=256)),
    ("mlp", dict(hidden=128, layers=3, batch=4096, features=300)),
]
NAMES = dict(hidden="--hidden-dim", layers="--num-layers", heads="--num-heads", nodes="--num-nodes",
             batch="--batch-size", ffn="--ffn-dim", message="--mpnn", tokens="--seq-len",
             features="--features", degree="--avg-degree", dropout="--dropout")  # fmt: skip


@pytest.mark.parametrize("family, sizes", CONFIGS, ids=str)
def test_memory_is_predicted_within_15_percent(tmp_path, family, sizes):
    given = [w for k, v in sizes.items() if k in NAMES for w in (NAMES[k], v)]
    predicted = answer("flops", family, *given)["memory"]["step_mb"]
    words = [f"{k}={v}" for k, v in sizes.items()]
    done = run(tmp_path / "run", program("ref_net"), "-", family, "steps=2", *words)
    peak = done.report()["allocations"]["peak_bytes"] / 2**20
    assert predicted == pytest.approx(peak, rel=0.15)


def test_the_zones_of_the_nets_are_in_a_profile(tmp_path):
    run(tmp_path / "run", program("ref_net"), "-", "graph_transformer", "steps=5", "hidden=32",
        "layers=2", "heads=4", "nodes=50")  # fmt: skip
    a = report(tmp_path / "run")
    names = {o["name"]: o["count"] for o in a["operations"]}
    assert names["attention forward"] == 10 and names["mpnn backward"] == 10
    assert {p["phase"] for p in a["phases"]} >= {"forward", "backward", "optimizer"}


# ---- Data sets --------------------------------------------------------------------------------


def write_dataset(folder, graphs, zipped=True):
    """graphs: (features of nodes, edges, labels)."""
    files = {
        "num-node-list": [[len(x)] for x, _, _ in graphs],
        "num-edge-list": [[len(e)] for _, e, _ in graphs],
        "edge": [e for _, edges, _ in graphs for e in edges],
        "node-feat": [row for x, _, _ in graphs for row in x],
        "graph-label": [labels for _, _, labels in graphs],
    }
    folder.mkdir(parents=True)
    for name, rows in files.items():
        text = "".join(",".join(map(str, row)) + "\n" for row in rows).encode()
        if zipped:
            (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text))
        else:
            (folder / f"{name}.csv").write_bytes(text)


GRAPHS = [
    ([[0.5, 1], [2, 3], [4, 5]], [(0, 1), (1, 2)], [1, 0]),
    ([[1, 1]] * 5, [(0, 1), (1, 2), (2, 3), (3, 4)], [0, 1]),
]


@pytest.mark.parametrize("zipped", [True, False])
def test_a_folder_of_csv_files_is_a_data_set(tmp_path, zipped):
    write_dataset(tmp_path / "mols" / "raw", GRAPHS, zipped)
    a = answer("model", "--dataset", tmp_path / "mols", *SMALL[:6], *QUICK)
    assert a["model_info"]["features"] == 2 and a["model_info"]["outputs"] == 2
    assert "2 graphs, 8 nodes, 12 directed edges" in a["note"]  # reverses were added
    assert a["padding"]["node_waste"] == pytest.approx(1 - 8 / 10)
    assert a["padding"]["pair_waste"] == pytest.approx(1 - 34 / 50)
    attention = [c for c in a["flops"]["components"] if c["name"] == "attention"][0]
    assert attention["forward"]["macs"] == 2 * (4 * 8 * 32**2 + 2 * 34 * 32)


def test_peptides_func_has_a_stand_in():
    a = answer("model", "--dataset", "peptides_func", *SMALL[:6], *QUICK, "-b", 4)
    assert "generated" in a["note"] and a["model_info"]["features"] == 9
    assert a["model_info"]["outputs"] == 10 and a["padding"]["graphs"] == 4


def test_a_broken_data_set_is_named(tmp_path):
    write_dataset(tmp_path / "bad", [([[1]] * 2, [(0, 7)], [1])])
    done = sonde("model", "--dataset", tmp_path / "bad", check=False)
    assert done.returncode == 2
    assert "edge.csv, line 1: node 7 in a graph of 2" in done.stderr


# ---- Scaling --------------------------------------------------------------------------------------


# That the fits are right is shown with known times (unit/model/run/growth); here it is the
# nets that are looked at. A busy machine takes caches and cycles away, from some sizes more
# than from others: then the experiment is done again, three times at most.
ROUGHLY = 0.25


def holds(exponent, power):
    low, high = exponent["low"], exponent["high"]
    within = low is not None and high is not None and low <= power <= high
    return within or abs(exponent["value"] - power) < ROUGHLY


def grows(name, power, *arguments, key="exponent"):
    seen = []
    for _ in range(3):
        a = answer("scale", *arguments, *STEADY)
        seen.append(curve(a, name).get(key))
        if seen[-1] and holds(seen[-1], power):
            return a
    raise AssertionError(f"{name} should grow with power {power}: {seen}")


def test_products_grow_with_the_third_power(tmp_path):
    plot = tmp_path / "plot.svg"
    a = grows("product", 3, "matmul", 192, 384, 768, "--num-runs", 8, "--plot", plot)
    s = a["scaling"]
    assert [p["value"] for p in s["points"]] == [192, 384, 768]
    exponent = s["curves"][0]["exponent"]
    assert exponent["low"] <= exponent["value"] <= exponent["high"]
    assert ElementTree.parse(plot).getroot().tag.endswith("svg")


def curve(a, name):
    return next(c for c in a["scaling"]["curves"] if c["name"] == name)


def test_attention_grows_with_the_square_and_messages_with_edges():
    a = grows("attention pairs", 2, "nodes", 200, 400, 800, "--hidden-dim", 16, "--num-heads", 2,
              "--num-layers", 2, "--num-runs", 6)  # fmt: skip
    assert len(curve(a, "training_step")["local_exponents"]) == 2
    assert a["scaling"]["largest_that_fits"] > 800
    # From few edges on, where what nodes cost is most of it.
    small = ("--num-nodes", 200, "--hidden-dim", 64, "--num-heads", 2, "--num-layers", 2)
    a = grows("messages", 1, "edges", 500, 2000, 8000, 32000, 128000, *small, "--num-runs", 6,
              key="exponent_beyond_constant")  # fmt: skip
    assert a["scaling"]["points"][-1]["measured"]


def test_what_would_not_fit_is_skipped_with_a_note():
    a = answer("scale", "nodes", 50, 20000, *SMALL[:6], *QUICK, "--memory", "100MiB")
    small, large = a["scaling"]["points"]
    assert small["measured"] and not large["measured"]
    assert "skipped: would take" in large["note"] and large["predicted_mb"] > 100
    a = answer("scale", "nodes", 50, 2000, *SMALL[:6], *QUICK, "--budget", "100ms")
    assert "more than the budget" in a["scaling"]["points"][1]["note"]


def test_batches_and_tokens_are_axes_too():
    a = answer("scale", "batch", 1, 2, *SMALL, *QUICK)
    assert a["scaling"]["best_batch_size"] in (1, 2) and a["scaling"]["best_samples_per_s"] > 0
    assert a["model_info"]["num_nodes"] == 60 and a["hardware"]["cores"] >= 1
    a = answer("scale", "tokens", 16, 32, "--model", "gpt2", *SMALL[:6], *QUICK)
    first, second = a["scaling"]["points"]
    assert second["forward_flops"] > 2 * first["forward_flops"]


def test_encodings_are_compared():
    a = answer("scale", "pe", "none", "rwse:4", "rwse_sparse:4", *SMALL, *QUICK)
    assert a["scaling"]["parameter_values"] == ["none", "rwse:4", "rwse_sparse:4"]
    once = curve(a, "encoding (once)")["ms"]
    assert once[0] is None and once[1] > 0 and once[2] > 0


def test_the_text_is_readable():
    text = sonde("scale", "layers", 1, 2, *SMALL[:2], *SMALL[4:], *QUICK).stdout
    assert "training step" in text and "GROWTH" in text and "attention" in text
    text = sonde("model", *SMALL, *QUICK).stdout
    for word in ("FORWARD", "RUNTIME", "ROOFLINE", "MFU", "predicted"):
        assert word in text
    for more in (["scale", "edges", 100, 200, 400, 800, 1600, 3200, 6400, *SMALL],
                 ["scale", "pe", "none", "rwse:4", "lap_lanczos:8", *SMALL],
                 ["model", "--model", "gpt2", "--seq-len", 32, *SMALL[:6]]):  # fmt: skip
        text += sonde(*more, *QUICK).stdout
    assert max(map(len, text.splitlines())) <= 80


# ---- torch models -------------------------------------------------------------------------------------

FACTORY = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, hidden_dim):
        super().__init__()
        self.a, self.b = nn.Linear(16, hidden_dim), nn.Linear(hidden_dim, 3)

    def forward(self, x, edge_index):
        return self.b(self.a(x).index_add(0, edge_index[1], self.a(x)[edge_index[0]]))

def make(hidden_dim=8):
    print("this is not JSON")
    return Net(hidden_dim)

def pair(batch_size=5):
    return nn.Linear(6, 2), torch.randn(batch_size, 6)

def broken():
    raise ValueError("no such size")

def nothing():
    return None

def three():
    return nn.Linear(2, 2), 1, 2

def misfit():
    return nn.Linear(2, 2), torch.randn(3, 5)
"""


def has_torch():
    import importlib.util

    return importlib.util.find_spec("torch") is not None and sys.executable == "/usr/bin/python3"


@pytest.mark.skipif(not has_torch(), reason="needs Debian's torch")
def test_a_factory_makes_a_torch_model(tmp_path):
    file = tmp_path / "net.py"
    file.write_text(FACTORY)
    a = answer("model", "--model", f"{file}:make", "--hidden_dim", 12, *QUICK, "--num-nodes", 40,
               "--profile", "runtime", "memory", "flops", env=PYTHON)  # fmt: skip
    assert a["schema"] == "sonde.model/1"
    assert a["model_info"]["total_parameters"] == 16 * 12 + 12 + 36 + 3
    assert a["flops"]["gmacs"] * 1e9 == pytest.approx(40 * (2 * 16 * 12 + 36))
    assert a["runtime"]["training_step"]["mean"] > 0 and a["flops"]["coverage"] == 1
    roof = a["roofline"]
    assert roof["peak_flops_per_s"] > roof["achieved_flops_per_s"] > 0 and 0 < roof["mfu"] < 1
    parts = {p["name"]: p for p in roof["parts"]}
    assert parts["b"]["flops"] == 2 * 40 * 36 + 40 * 3  # a product and its bias
    assert parts["b"]["bytes"] == 4 * (40 * 12 + 36 + 3 + 40 * 3)
    assert parts["(between)"]["bound_by"] == "memory" and parts["a"]["ms"] > 0
    assert sum(p["share"] for p in roof["parts"]) == pytest.approx(1)
    text = sonde("model", "--model", f"{file}:make", *QUICK, "--dropout", 0.1, "--cpu-time", env=PYTHON).stdout
    assert "ROOFLINE" in text and "MFU" in text
    assert max(map(len, text.splitlines()[1:])) <= 80
    a = answer("model", "--model", f"{file}:pair", *QUICK, "--profile", "flops", "scaling", env=PYTHON)
    assert a["flops"]["gmacs"] * 1e9 == pytest.approx(5 * 12)
    [batches] = a["scaling"]  # the only size that it takes
    assert batches["axis"] == "batch_size" and batches["parameter_values"] == [1, 2, 4, 8]
    assert all(point["mean"] > 0 for point in batches["runtime"])


@pytest.mark.skipif(not has_torch(), reason="needs Debian's torch")
@pytest.mark.parametrize("name, words", [("broken", "broken() raised ValueError: no such size"),
                                         ("nothing", "not a torch module"),
                                         ("three", "3 things: a module, or (module, inputs)"),
                                         ("misfit", "the model failed in runtime: RuntimeError"),
                                         ("missing", "has no function 'missing'")])  # fmt: skip
def test_a_factory_that_fails_is_told(tmp_path, name, words):
    file = tmp_path / "net.py"
    file.write_text(FACTORY)
    out = tmp_path / "out.json"
    done = sonde("model", "--model", f"{file}:{name}", "-o", out, check=False, env=PYTHON)
    assert done.returncode == 2 and words in done.stderr
    assert done.stdout == "" and not out.exists()
