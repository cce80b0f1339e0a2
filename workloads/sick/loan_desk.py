# truth: logging_stall
# about: at every step each application of the batch gets its own line in the decision journal, through the logging module and a handler that flushes and syncs; writing the lines takes longer than the update
# also: io_wait
# cure: --journal-every 30
# whatif: logging=30
# needs: torch numpy
"""Probability of default for loan applications; a gated network over tabular columns."""
import argparse
import logging
import os
import shutil
import tempfile
import time

import numpy as np
import torch
from torch import nn

cli = argparse.ArgumentParser()
cli.add_argument("--journal-every", type=int, default=1)
cli.add_argument("--steps", type=int, default=240)
args = cli.parse_args()

torch.manual_seed(23)
torch.set_num_threads(1)
rng = np.random.default_rng(23)
scratch = tempfile.mkdtemp(prefix="loans_")


class SafeFile(logging.FileHandler):
    """The journal has to survive a crash of the machine."""

    lines = 0

    def emit(self, record):
        super().emit(record)
        self.lines += 1
        if self.lines % 64 == 0:
            os.fsync(self.stream.fileno())


handler = SafeFile(os.path.join(scratch, "decisions.log"))
handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s %(funcName)s:%(lineno)d %(message)s"))
journal = logging.getLogger("desk.journal")
journal.addHandler(handler)
journal.setLevel(logging.INFO)
journal.propagate = False

# ---- applications -------------------------------------------------------
COUNT, COLUMNS, BATCH = 30_000, 64, 384
income = rng.lognormal(10.2, 0.5, COUNT)
amount = rng.lognormal(9.4, 0.8, COUNT)
columns = rng.normal(size=(COUNT, COLUMNS)).astype(np.float32)
columns[:, 0] = np.log(income) - 10.2
columns[:, 1] = np.log(amount) - 9.4
odds = 1.3 * columns[:, 1] - 1.7 * columns[:, 0] + 0.5 * columns[:, 2] * columns[:, 3] - 1.0
default = (rng.random(COUNT) < 1 / (1 + np.exp(-odds))).astype(np.float32)
number = [f"{y}-{k:06d}" for k, y in enumerate(rng.integers(2015, 2024, COUNT))]
x_all, y_all = torch.from_numpy(columns), torch.from_numpy(default)


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.both = nn.Linear(width, 2 * width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x + nn.functional.glu(self.both(x)))


net = nn.Sequential(nn.Linear(COLUMNS, 160), *[Gate(160) for _ in range(3)], nn.Linear(160, 1))
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
criterion = nn.BCEWithLogitsLoss()


def write_decisions(step, rows, logits, y):
    risk = torch.sigmoid(logits.detach()).tolist()
    for row, p, late in zip(rows.tolist(), risk, y.tolist()):
        verdict = "refuse" if p > 0.35 else "grant"
        journal.info("step=%d application=%s amount=%.2f income=%.2f risk=%.4f decision=%s outcome=%d",
                     step, number[row], amount[row], income[row], p, verdict, int(late))


start = time.perf_counter()
for step in range(args.steps):
    rows = torch.randint(COUNT, (BATCH,))
    x, y = x_all[rows], y_all[rows]
    logits = net(x)[:, 0]
    loss = criterion(logits, y)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    if step % args.journal_every == 0:
        write_decisions(step, rows, logits, y)
seconds = time.perf_counter() - start
print(f"loss {loss.item():.4f}; {args.steps} steps, {1e3 * seconds / args.steps:.2f} ms a step, {handler.lines} lines")

handler.close()
shutil.rmtree(scratch)
