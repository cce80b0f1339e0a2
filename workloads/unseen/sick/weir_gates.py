# truth: logging_stall
# about: after every step the run diary writes a line per weight tensor and per forecast and forces each line to the disk with fsync, which takes longer than the step itself
# also: io_wait small_reads
# cure: --diary-every 20
# whatif: logging=20
# needs: torch numpy
"""Gate opening of a weir from upstream levels: a GRU reads the last day, predicts the next six hours."""
import argparse
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn


class Diary:
    """Survives power cuts at the station: what was written is on the disk."""

    def __init__(self, path):
        self.file = open(path, "a", encoding="ascii")

    def line(self, text):
        self.file.write(time.strftime("%H:%M:%S ") + text + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())

    def step(self, n, loss, model, hours, opening):
        self.line(f"step {n} loss {loss:.5f}")
        for name, p in model.named_parameters():
            self.line(f"step {n} {name} grad {p.grad.norm().item():.6f}")
        for hour, gate in zip(hours.tolist(), opening.tolist()):
            self.line(f"step {n} hour {hour} gate " + " ".join(f"{g:+.3f}" for g in gate))

    def close(self):
        self.file.close()


def river(hours, rng):
    t = np.arange(hours)
    level = np.sin(t / 24 * 2 * np.pi) + 0.5 * np.sin(t / 311) + np.cumsum(rng.normal(size=hours)) * 0.02
    rain = np.maximum(rng.normal(size=hours) - 1, 0)
    return np.stack([level, rain, np.roll(level, 3)], 1).astype(np.float32)


class GateModel(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.gru = nn.GRU(3, hidden, batch_first=True)
        self.mix = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 6)

    def forward(self, x):
        h, _ = self.gru(x)
        return self.out(torch.tanh(self.mix(h[:, -1])))


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--steps", type=int, default=1100)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--hidden", type=int, default=32)
    ap.add_argument("--diary-every", type=int, default=1)
    a = ap.parse_args()

    rng = np.random.default_rng(77)
    torch.manual_seed(77)
    torch.set_num_threads(1)
    series = river(6000, rng)
    model = GateModel(a.hidden)
    opt = torch.optim.RMSprop(model.parameters(), lr=1e-3)

    with tempfile.TemporaryDirectory(prefix="weir") as folder:
        diary = Diary(os.path.join(folder, "diary.txt"))
        for n in range(1, a.steps + 1):
            starts = rng.integers(0, len(series) - 30, size=a.batch)
            x = torch.from_numpy(np.stack([series[s:s + 24] for s in starts]))
            y = torch.from_numpy(np.stack([series[s + 24:s + 30, 0] for s in starts]))
            opening = model(x)
            loss = nn.functional.smooth_l1_loss(opening, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if n % a.diary_every == 0:
                diary.step(n, loss.item(), model, starts, opening.detach())
        diary.close()
    print(f"after {a.steps} steps: {loss.item():.4f}")


if __name__ == "__main__":
    main()
