# truth: startup_bound
# about: every run reads the same typed assay sheets of the mine anew, line by line with a regular expression, check digits and unit conversions in Python, and trains only after that; the table of numbers could be kept in a file (--kept: an earlier run has kept it)
# cure: --kept
# gain: none
# env: OPENBLAS_NUM_THREADS=1
# needs: torch numpy
"""Gold grade from the other elements of an assay sample."""
import argparse
import os
import re
import tempfile

import numpy as np
import torch
from torch import nn

ELEMENTS = ["Ag", "As", "Bi", "Cu", "Fe", "Pb", "S", "Sb", "Zn"]
UNITS = {"ppb": 1e-3, "ppm": 1.0, "pct": 1e4}
LINE = re.compile(r"HOLE (?P<hole>\w+)\s+FROM (?P<top>[\d.]+)m TO (?P<end>[\d.]+)m\s+(?P<values>.*) AU (?P<gold>[\d.]+)g/t \*(?P<check>\d+)$")
VALUE = re.compile(r"([A-Z][a-z]?)=([<\d.]+)(ppb|ppm|pct)")


def check_digit(text):
    total = 0
    for letter in text:
        total = (total + ord(letter)) % 97
    return total


def table(samples, seed):
    rng = np.random.default_rng(seed)
    parts = np.round(rng.lognormal(1, 0.8, (samples, len(ELEMENTS))), 2)
    gold = np.round(0.3 * parts[:, 1] + 0.1 * parts[:, 0] * parts[:, 7], 3)
    return np.concatenate([parts, gold[:, None]], 1).astype(np.float32)


def type_sheets(path, numbers):
    with open(path, "w") as sheet:
        for n, row in enumerate(numbers.tolist()):
            values = " ".join(f"{e}={v:.2f}ppm" for e, v in zip(ELEMENTS, row))
            text = f"HOLE DD{n // 200:04d}  FROM {n % 200}.0m TO {n % 200 + 1}.0m  {values} AU {row[-1]:.3f}g/t"
            sheet.write(f"{text} *{sum(text.encode()) % 97}\n")


def read_sheets(path):
    rows, odd = [], 0
    with open(path) as sheet:
        for line in sheet:
            line = line.rstrip("\n")
            found = LINE.match(line)
            odd += check_digit(line[:line.rindex(" *")]) != int(found["check"])
            values = {e: float(v.lstrip("<")) * UNITS[unit] for e, v, unit in VALUE.findall(found["values"])}
            rows.append([values.get(e, 0.0) for e in ELEMENTS] + [float(found["gold"])])
    print(f"{len(rows)} samples, {odd} mistyped")
    return np.array(rows, np.float32)


def train(numbers, steps):
    data = torch.from_numpy(np.log1p(numbers))
    model = nn.Sequential(nn.Linear(len(ELEMENTS), 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    g = torch.Generator().manual_seed(2)
    for step in range(steps):
        rows = data[torch.randint(0, len(data), (1024,), generator=g)]
        loss = nn.functional.mse_loss(model(rows[:, :-1]).squeeze(1), rows[:, -1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"grade within {loss.item():.4f}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--kept", action="store_true")
    p.add_argument("--steps", type=int, default=180)
    p.add_argument("--samples", type=int, default=260_000)
    a = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        numbers = table(a.samples, 5)
        if a.kept:
            np.save(os.path.join(folder, "assays.npy"), numbers)
            numbers = np.load(os.path.join(folder, "assays.npy"))
        else:
            type_sheets(os.path.join(folder, "assays.txt"), numbers)
            numbers = read_sheets(os.path.join(folder, "assays.txt"))
        train(numbers, a.steps)


if __name__ == "__main__":
    main()
