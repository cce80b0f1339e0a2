# truth: batch_too_small
# about: four station-years at a time go through a small recurrent net, so a step is mostly the fixed price of starting its operations; with 64 at a time the same years take a fraction of the time
# cure: --batch 64
# whatif: batch=16
# gain: run
# needs: torch
"""The day the monsoon sets in, from the weeks of humidity and wind before it."""
import argparse
import math
import time

import torch

CONFIG = {"weeks": 10, "channels": 6, "hidden": 48, "lr": 2e-3, "years": 9600, "seed": 1901}


def station_years(cfg):
    gen = torch.Generator().manual_seed(cfg["seed"])
    onset = torch.randn(cfg["years"], generator=gen)
    t = torch.linspace(0, 1, cfg["weeks"])
    wave = torch.stack([torch.sin(2 * math.pi * (f + 1) * (t[None] - 0.1 * onset[:, None])) for f in range(cfg["channels"])], -1)
    return wave + 0.3 * torch.randn(wave.shape, generator=gen), onset


def build(cfg):
    torch.manual_seed(cfg["seed"])
    return torch.nn.ModuleDict({
        "lift": torch.nn.Linear(cfg["channels"], cfg["hidden"]),
        "rnn": torch.nn.GRU(cfg["hidden"], cfg["hidden"], batch_first=True),
        "mean": torch.nn.Linear(cfg["hidden"], 1),
        "scale": torch.nn.Linear(cfg["hidden"], 1)})


def loss_of(model, x, y):
    _, h = model["rnn"](torch.relu(model["lift"](x)))
    mean, log_scale = model["mean"](h[0])[:, 0], model["scale"](h[0])[:, 0].clamp(-4, 4)
    return (log_scale + 0.5 * ((y - mean) / log_scale.exp()) ** 2).mean()


def epoch(model, opt, x, y, batch):
    total, count = 0.0, 0
    for pick in torch.randperm(len(x)).split(batch):
        loss = loss_of(model, x[pick], y[pick])
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        total, count = total + loss.detach(), count + 1
    return float(total / count), count


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch", type=int, default=4)
    args = ap.parse_args()
    torch.set_num_threads(1)
    x, y = station_years(CONFIG)
    model = build(CONFIG)
    opt = torch.optim.Adam(model.parameters(), CONFIG["lr"])
    began = time.perf_counter()
    loss, steps = epoch(model, opt, x, y, args.batch)
    took = time.perf_counter() - began
    print("loss %.4f, %d steps in %.2f s, %.2f ms per step" % (loss, steps, took, 1e3 * took / steps))


if __name__ == "__main__":
    main()
