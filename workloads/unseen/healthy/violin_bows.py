# truth: none
# about: an autoencoder of violin spectra held in memory; the step is matrix products on both cores
# needs: torch numpy
"""Bowing styles: a denoising autoencoder of short-time spectra of violin notes."""
import argparse
import time

import numpy as np
import torch
from torch import nn

BANDS, FRAMES = 513, 12000


def spectra():
    rng = np.random.default_rng(70)
    pitch = rng.integers(8, 40, FRAMES)
    band = np.arange(BANDS, dtype=np.float32)
    out = np.zeros((FRAMES, BANDS), np.float32)
    for partial in range(1, 9):
        out += np.exp(-0.5 * ((band - partial * pitch[:, None]) / 2.0) ** 2, dtype=np.float32) / partial
    return torch.from_numpy(out)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100)
    args = ap.parse_args()
    torch.manual_seed(70)
    torch.set_num_threads(2)
    data = spectra()
    model = nn.Sequential(nn.Linear(BANDS, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 48),
                          nn.Linear(48, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, BANDS))
    opt = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    began, cpu, total = time.perf_counter(), time.process_time(), torch.zeros(())
    for step in range(args.steps):
        clean = data[torch.randint(FRAMES, (1024,))]
        loss = nn.functional.mse_loss(model(clean + 0.05 * torch.randn_like(clean)), clean)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        total += loss.detach()
        if step % 40 == 39:
            print("step %d: %.5f" % (step + 1, total.item() / (step + 1)))
    print("%.1f s, cpu %.1f ms a step" % (time.perf_counter() - began, 1e3 * (time.process_time() - cpu) / args.steps))


if __name__ == "__main__":
    main()
