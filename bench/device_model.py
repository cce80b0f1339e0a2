#!/usr/bin/env python3
"""On a machine with a newer torch and a GPU: our counter beside torch's own, and predicted
beside allocated memory.

    python3 bench/device_model.py PREDICTIONS.json > answer.json

PREDICTIONS.json comes from `bench/device_model.py --predict [SEED]` where Sonde is built: the
GPU machine need not have our extension, so the package is loaded without it. Without a seed
the configurations are those the memory model was made with; with one they are drawn, so
that nobody can have fitted them.
"""

import json
import random
import sys
import time
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = [
    dict(num_nodes=500, hidden_dim=256, num_layers=6, num_heads=8, batch_size=4),
    dict(num_nodes=1000, hidden_dim=256, num_layers=6, num_heads=8, batch_size=2),
    dict(num_nodes=2000, hidden_dim=256, num_layers=6, num_heads=8, batch_size=1),
    dict(num_nodes=1000, hidden_dim=512, num_layers=12, num_heads=8, batch_size=1),
    dict(num_nodes=500, hidden_dim=128, num_layers=16, num_heads=4, batch_size=8),
    dict(num_nodes=4000, hidden_dim=128, num_layers=4, num_heads=4, batch_size=1),
    dict(num_nodes=200, hidden_dim=1024, num_layers=8, num_heads=16, batch_size=8),
    dict(num_nodes=1000, hidden_dim=256, num_layers=6, num_heads=1, batch_size=4),
    dict(num_nodes=3000, hidden_dim=256, num_layers=2, num_heads=16, batch_size=1),
    dict(num_nodes=500, hidden_dim=768, num_layers=12, num_heads=12, batch_size=2),
    dict(num_nodes=150, hidden_dim=256, num_layers=6, num_heads=8, batch_size=64),
    dict(num_nodes=1000, hidden_dim=256, num_layers=6, num_heads=8, batch_size=2, mpnn_type="gcn"),
]


def drawn(seed, count=16):
    """Configurations nobody chose; bounded so that a step stays below some GiB."""
    dice = random.Random(seed)
    found = []
    while len(found) < count:
        heads = dice.choice([1, 2, 4, 8, 16])
        c = dict(
            num_nodes=dice.randrange(50, 4000),
            hidden_dim=heads * dice.randrange(8, 97, 8),
            num_layers=dice.randrange(1, 17),
            num_heads=heads,
            batch_size=dice.randrange(1, 33),
            mpnn_type=dice.choice(["gin", "gcn", "sage"]),
        )
        scores = c["batch_size"] * heads * c["num_nodes"] ** 2 * c["num_layers"]
        states = c["batch_size"] * c["num_nodes"] * c["hidden_dim"] * c["num_layers"]
        if scores + 20 * states < 2e9 and c["hidden_dim"] <= 1024:
            found.append(c)
    return found


def predict(seed=None):
    sys.path.insert(0, str(ROOT / "build" / "python"))
    import sonde

    configs = CONFIGS if seed is None else drawn(seed)
    peaks = [sonde.estimate_training_memory(features=16, outputs=10, **c)["peak"] for c in configs]
    print(json.dumps([dict(config=c, predicted_mb=p) for c, p in zip(configs, peaks)]))


def load_without_extension():
    package = types.ModuleType("sonde")
    package.__path__ = [str(ROOT / "python" / "sonde")]
    stub = types.ModuleType("sonde._sonde")
    stub.__file__ = None  # inspect asks every module
    stub.__getattr__ = lambda name: (lambda *a, **k: None)
    sys.modules.update({"sonde": package, "sonde._sonde": stub})
    from sonde import _flops

    return _flops


def torch_counter(module, inputs, backward):
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        out = module(*inputs)
        if backward:
            first = out[0] if isinstance(out, tuple) else out
            torch.autograd.backward([first], [torch.ones_like(first)])
    return counter.get_total_flops()


def counters(ours, device):
    import torch

    sys.path.insert(0, str(ROOT / "tests" / "python"))
    from flops_modules import cases

    rows = []
    for name, module, inputs, forward, both in cases():
        module = module.to(device)
        inputs = tuple(i.to(device) for i in inputs)
        row = dict(module=name, by_hand=None if forward is None else 2 * forward)
        for backward in (False, True):
            key = "both" if backward else "forward"
            try:
                with torch.set_grad_enabled(backward):
                    row[f"torch_{key}"] = torch_counter(module, inputs, backward)
                counted = ours.flops(module, inputs, backward=backward)
                row[f"ours_{key}"] = counted.matrix_flops
                row[f"unknown_{key}"] = [u.name for u in counted.unknown]
            except Exception as error:
                row[f"error_{key}"] = f"{type(error).__name__}: {error}"
        rows.append(row)
    return rows


def memory(predictions):
    import torch

    sys.path.insert(0, str(ROOT / "tests" / "system"))
    import ref_torch

    rows = []
    for entry in predictions:
        c = entry["config"]
        torch.cuda.empty_cache()
        model = ref_torch.GraphTransformer(
            16, c["hidden_dim"], c["num_layers"], c["num_heads"], message=c.get("mpnn_type", "gin")
        ).cuda()
        n, b = c["num_nodes"], c["batch_size"]
        base = torch.arange(b).repeat_interleave(5 * n) * n
        source, target = (torch.randint(n, (5 * n * b,)) + base for _ in range(2))
        batch = torch.randn(n * b, 16).cuda(), source.cuda(), target.cuda(), b
        labels = torch.randint(2, (b, 10)).float().cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        for step in range(3):
            if step == 1:
                torch.cuda.reset_peak_memory_stats()
            optimizer.zero_grad(set_to_none=True)
            model.loss(model(*batch), labels).backward()
            optimizer.step()
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated() / 2**20
        rows.append(dict(entry, measured_mb=peak, error=entry["predicted_mb"] / peak - 1))
        del model, optimizer, batch, labels
    return rows


def main():
    if "--predict" in sys.argv:
        return predict(*map(int, sys.argv[2:]))
    import torch

    ours = load_without_extension()
    answer = dict(torch=torch.__version__)
    if torch.cuda.is_available():
        answer["gpu_name"] = torch.cuda.get_device_name()
        answer["memory"] = memory(json.loads(Path(sys.argv[1]).read_text()))
        answer["gpu"] = counters(ours, "cuda")
    answer["cpu"] = counters(ours, "cpu")
    answer["took_s"] = time.process_time()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
