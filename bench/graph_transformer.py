"""A graph transformer in training: what phases cost, beside torch.profiler.

    sonde run -- python bench/graph_transformer.py [--device cuda] [--windows 40]

GPS layers (message passing beside attention, then feed-forward), width 256, 6 layers, four
graphs of 500 nodes. It is a plain script; only the measuring at the end knows of Sonde.
Recording is switched on and off in turns, window by window, inside one process: from
process to process the bare step moves by more than what is to be measured. Each window
of "on" is compared with the mean of its two neighbours; told are the median of those
ratios and its interval.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        graphs, nodes, width = x.shape
        split = self.qkv(x).view(graphs, nodes, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2) * (width // self.heads) ** -0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(graphs, nodes, width))


class Messages(nn.Module):
    """GIN with edge features."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.eps = nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor, edges: torch.Tensor, e: torch.Tensor) -> torch.Tensor:
        sent = F.relu(x[edges[0]] + e)
        received = torch.zeros_like(x).index_add_(0, edges[1], sent)
        return self.mlp((1 + self.eps) * x + received)


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.local, self.attention = Messages(width), Attention(width, heads)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.feed = nn.Sequential(
            nn.Linear(width, 2 * width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(2 * width, width)
        )

    def forward(self, x, edges, e, graphs: int) -> torch.Tensor:
        a = self.norms[0](x + self.local(x, edges, e))
        b = self.attention(x.view(graphs, -1, x.shape[-1])).reshape(x.shape)
        x = a + self.norms[1](x + b)
        return self.norms[2](x + self.feed(x))


class GPS(nn.Module):
    def __init__(self, width: int = 256, layers: int = 6, heads: int = 8) -> None:
        super().__init__()
        self.nodes, self.edges = nn.Linear(16, width), nn.Linear(4, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, 1)

    def forward(self, x, edges, features, graphs: int) -> torch.Tensor:
        h, e = self.nodes(x), self.edges(features)
        for layer in self.layers:
            h = layer(h, edges, e, graphs)
        return self.head(h.view(graphs, -1, h.shape[-1]).mean(1))


def batch(device: str, graphs: int, nodes: int, degree: int = 5):
    n = graphs * nodes
    graph = torch.arange(n * degree) // (nodes * degree)
    edges = torch.randint(nodes, (2, n * degree)) + graph * nodes
    return [
        t.to(device)
        for t in (torch.randn(n, 16), edges, torch.randn(n * degree, 4), torch.randn(graphs, 1))
    ]


def parse() -> argparse.Namespace:
    p = argparse.ArgumentParser()
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--graphs", type=int, default=4)
    p.add_argument("--nodes", type=int, default=500)
    p.add_argument("--width", type=int, default=256)
    p.add_argument("--layers", type=int, default=6)
    p.add_argument("--windows", type=int, default=200)
    p.add_argument("--steps", type=int, default=5, help="per window")
    p.add_argument("--profiler", type=int, default=4, help="windows under torch.profiler")
    return p.parse_args()


def main() -> None:
    o = parse()
    torch.manual_seed(0)
    net = GPS(o.width, o.layers).to(o.device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    batches = [batch(o.device, o.graphs, o.nodes) for _ in range(8)]
    wait = torch.cuda.synchronize if o.device.startswith("cuda") else lambda: None

    def steps(count: int) -> float:
        wait()
        start = time.perf_counter()
        for i in range(count):
            x, edges, features, y = batches[i % len(batches)]
            optimizer.zero_grad(set_to_none=True)
            loss = F.mse_loss(net(x, edges, features, o.graphs), y)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        wait()
        return (time.perf_counter() - start) / count * 1e3

    steps(2 * o.steps)
    measure(o, steps)


# ---- from here on it is not a training script any more ----


def profiled(steps, count: int) -> float:
    from torch.profiler import ProfilerActivity, profile

    kinds = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        kinds.append(ProfilerActivity.CUDA)
    with profile(activities=kinds):
        return steps(count)


def interval(values: list[float]) -> tuple[float, float, float]:
    """Median with its 95 % interval by order statistics: no distribution is assumed."""
    values = sorted(values)
    n = len(values)
    half = 0.98 * n**0.5
    low, high = int(max(n / 2 - half, 0)), int(min(n / 2 + half, n - 1))
    return statistics.median(values), values[low], values[high]


def measure(o: argparse.Namespace, steps) -> None:
    try:
        import sonde
    except ImportError:
        print(f"bare step {statistics.median(steps(o.steps) for _ in range(o.windows)):.2f} ms")
        return
    off, on = [], []
    for _ in range(o.windows):
        sonde.pause()
        off.append(steps(o.steps))
        sonde.resume()
        on.append(steps(o.steps))
    sonde.pause()
    off.append(steps(o.steps))
    ratios = [b / ((off[i] + off[i + 1]) / 2) for i, b in enumerate(on)]
    theirs = [profiled(steps, o.steps) for _ in range(o.profiler)]
    sonde.resume()
    middle, low, high = interval(ratios)
    answer = {
        "bare_ms": round(statistics.median(off), 3),
        "phases_ms": round(statistics.median(on), 3),
        "ratio": round(middle, 5),
        "ratio_95": [round(low, 5), round(high, 5)],
        "mean_ratio": round(statistics.fmean(ratios), 5),
        "torch_profiler_ms": round(statistics.median(theirs), 3) if theirs else None,
        "windows": o.windows,
        "steps_per_window": o.steps,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
