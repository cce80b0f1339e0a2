"""The reference nets against torch: the same weights and batch give the same results,
gradients and update."""

import subprocess

import numpy
import pytest
from sonde_test import environment, program

torch = pytest.importorskip("torch")

import ref_torch  # noqa: E402

TOLERANCE = 1e-4  # relative to the largest element


def run(directory, family, **options):
    words = [f"{key}={value}" for key, value in options.items()]
    return subprocess.run(
        [program("ref_net"), str(directory), family, *words],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout


def read(directory):
    floats = numpy.fromfile(directory / "floats.bin", dtype=numpy.float32)
    arrays = {}
    for line in (directory / "list.txt").read_text().splitlines():
        name, *numbers = line.split()
        rows, columns, at = map(int, numbers)
        array = torch.from_numpy(floats[at : at + rows * (columns or 1)].copy())
        arrays[name] = array.view(rows, columns) if columns else array
    return arrays


def same(ours, theirs, what):
    error = (ours.reshape(-1) - theirs.detach().reshape(-1)).abs().max().item()
    scale = theirs.detach().abs().max().item()
    # A gradient that is exactly 0 in theory (keys' bias: softmax ignores it) is noise.
    assert error <= TOLERANCE * scale + 1e-7, f"{what}: {error} of {scale}"


def load(model, arrays):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(arrays[f"value:{name}"])
    names = {name for name, _ in model.named_parameters()}
    assert names == {n[6:] for n in arrays if n.startswith("value:")}


def compare(model, arrays, loss, logits, printed):
    loss.backward()
    ours = float(printed.split("loss ")[1].split()[0])
    assert abs(ours - loss.item()) <= TOLERANCE * loss.item()
    same(arrays["output"], logits, "logits")
    for name, parameter in model.named_parameters():
        same(arrays[f"grad:{name}"], parameter.grad, name)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    # The same gradients, so that the update alone is compared: AdamW's first step is
    # sign-like and would magnify noise around 0.
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.grad.copy_(arrays[f"grad:{name}"])
    optimizer.step()
    for name, parameter in model.named_parameters():
        same(arrays[f"after:{name}"], parameter, f"{name} after the update")


GRAPHS = [
    dict(message="gin"),
    dict(message="gcn"),
    dict(message="sage", batch=3),
    dict(message="none", heads=1),
    dict(message="gine"),
    dict(message="gine", hidden=24, heads=3, nodes=11, batch=4, degree=2),
    dict(message="gat"),
    dict(message="gat", hidden=30, heads=5, nodes=17, batch=3),
    dict(message="gatedgcn"),
    dict(message="gatedgcn", layers=3, nodes=23, degree=7),
    dict(message="pna"),
    dict(message="pna", hidden=20, heads=2, nodes=13, batch=3, degree=2),
    dict(message="gin", hidden=48, heads=6, layers=3, nodes=37, batch=5, ffn=50),
    dict(message="gcn", encoding="rwse", pe_dim=8, nodes=20),
]


@pytest.mark.parametrize("options", GRAPHS, ids=str)
def test_the_graph_transformer_is_torchs(tmp_path, options):
    o = dict(hidden=32, layers=2, heads=4, nodes=60, batch=2, degree=4) | options
    printed = run(tmp_path, "graph_transformer", **o)
    arrays = read(tmp_path)
    model = ref_torch.GraphTransformer(
        16 + o.get("pe_dim", 0), o["hidden"], o["layers"], o["heads"], o.get("ffn"), 10,
        o["message"],
    )
    load(model, arrays)
    edges = arrays["source"].long(), arrays["target"].long()
    logits = model(arrays["x"], *edges, o["batch"])
    compare(model, arrays, model.loss(logits, arrays["labels"]), logits, printed)


@pytest.mark.parametrize("options", [{}, dict(heads=1, layers=1), dict(tokens=65, batch=3)], ids=str)
def test_gpt2_is_torchs(tmp_path, options):
    o = dict(hidden=32, layers=2, heads=4, tokens=24, batch=2) | options
    printed = run(tmp_path, "gpt2", **o)
    arrays = read(tmp_path)
    model = ref_torch.GPT2(256, o["tokens"], o["hidden"], o["layers"], o["heads"])
    load(model, arrays)
    logits = model(arrays["tokens"].long().view(o["batch"], -1))
    loss = model.loss(logits, arrays["next"].long())
    compare(model, arrays, loss, logits, printed)


def test_the_mlp_is_torchs(tmp_path):
    printed = run(tmp_path, "mlp", hidden=40, layers=4, batch=12, features=30)
    arrays = read(tmp_path)
    model = ref_torch.MLP(30, 40, 4)
    load(model, arrays)
    logits = model(arrays["x"])
    loss = model.loss(logits, arrays["classes"].long())
    compare(model, arrays, loss, logits, printed)


SMALL = dict(hidden=32, layers=2, heads=4, nodes=40, tokens=32, batch=4)


def losses(printed):
    return [float(line.split()[2]) for line in printed.splitlines() if line.startswith("step")]


@pytest.mark.parametrize("family", ["graph_transformer", "gpt2", "mlp"])
def test_the_loss_falls_on_what_can_be_learnt(family):
    first, *_, last = losses(run("-", family, steps=60, **SMALL))
    assert last < first / 2, f"{family}: {first} to {last}"


@pytest.mark.parametrize("message", ["gine", "gat", "gatedgcn", "pna"])
def test_every_kind_of_messages_learns(message):
    first, *_, last = losses(run("-", "graph_transformer", steps=60, message=message, **SMALL))
    assert last < first / 2, f"{message}: {first} to {last}"


@pytest.mark.parametrize("dropout, message", [(0, "gin"), (0.2, "gatedgcn"), (0, "pna"), (0.1, "gat")])
def test_the_same_seed_gives_the_same_bits(dropout, message):
    runs = [run("-", "graph_transformer", steps=5, seed=seed, dropout=dropout, message=message,
                **SMALL) for seed in (7, 7, 8)]
    assert runs[0] == runs[1]
    assert runs[0].splitlines()[-1] != runs[2].splitlines()[-1]
