# truth: oversubscribed
# about: the settings were copied from an 8-core workstation, so torch computes every small operation with 8 threads on two cores, and the threads wait for each other's turn on the cores
# also: cpu_saturated sync_stall
# cure: --threads 2
# whatif: threads=2
# needs: torch numpy
"""Formant tracks (F1, F2, F3) of vowels from filterbank frames, with a small dilated gated network."""
import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

CONFIG = {
    "seed": 77,
    "threads": 8,
    "speakers": 400,
    "frames": 160,
    "bands": 40,
    "width": 64,
    "dilations": (1, 2, 4, 8),
    "batch": 24,
    "lr": 2e-3,
    "steps": 60,
}


def synth_vowels(cfg):
    """Filterbank frames with three moving resonances; the centres are what is to be found."""
    rng = np.random.default_rng(cfg["seed"])
    n, t, b = cfg["speakers"], cfg["frames"], cfg["bands"]
    base = np.array([8.0, 18.0, 29.0])
    slope = rng.normal(0, 3, (n, 3, 1)) * np.linspace(-1, 1, t)
    centre = base[None, :, None] + rng.normal(0, 1.5, (n, 3, 1)) + slope
    grid = np.arange(b)[None, None, :, None]
    frames = np.exp(-0.5 * ((grid - centre[:, :, None, :]) / 1.3) ** 2).sum(1)
    frames += 0.1 * rng.standard_normal(frames.shape)
    return torch.from_numpy(frames.astype(np.float32)), torch.from_numpy((centre / b).astype(np.float32))


class Gate(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.conv = nn.Conv1d(width, 2 * width, 3, padding=dilation, dilation=dilation)
        self.out = nn.Conv1d(width, width, 1)

    def forward(self, x):
        a, b = self.conv(x).chunk(2, 1)
        h = torch.tanh(a) * torch.sigmoid(b)
        return x + self.out(h), h


class Tracker(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.inp = nn.Conv1d(cfg["bands"], cfg["width"], 1)
        self.gates = nn.ModuleList(Gate(cfg["width"], d) for d in cfg["dilations"])
        self.head = nn.Conv1d(cfg["width"], 3, 1)

    def forward(self, x):
        x = self.inp(x)
        skips = 0
        for gate in self.gates:
            x, h = gate(x)
            skips = skips + h
        return torch.sigmoid(self.head(F.relu(skips)))


def main():
    ap = argparse.ArgumentParser()
    for key in ("threads", "steps"):
        ap.add_argument("--" + key, type=int, default=CONFIG[key])
    cfg = dict(CONFIG, **vars(ap.parse_args()))
    torch.set_num_threads(cfg["threads"])
    torch.manual_seed(cfg["seed"])
    frames, tracks = synth_vowels(cfg)
    net = Tracker(cfg)
    opt = torch.optim.SGD(net.parameters(), cfg["lr"], momentum=0.9)
    pick = torch.Generator().manual_seed(cfg["seed"])
    began, cpu = time.perf_counter(), time.process_time()
    for step in range(cfg["steps"]):
        idx = torch.randint(len(frames), (cfg["batch"],), generator=pick)
        loss = F.smooth_l1_loss(net(frames[idx]), tracks[idx], beta=0.05)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if (step + 1) % 30 == 0:
            print("step %3d  loss %.5f" % (step + 1, loss.item()))
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    print("%.1f ms a step, %.1f ms of CPU" % (1e3 * wall / cfg["steps"], 1e3 * cpu / cfg["steps"]))


if __name__ == "__main__":
    main()
