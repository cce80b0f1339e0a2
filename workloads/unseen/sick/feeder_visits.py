# truth: collate_bound
# about: the collate function fills the batch number by number, in three nested Python loops, which costs far more than reading the samples; stacking whole arrays gives the same batch
# also: data_loading_bound preprocessing_bound
# cure: cured/feeder_visits.py
# whatif: collate=130
# needs: torch numpy
"""Which species came to the feeder? Weight and wing-beat traces of single visits, of unequal length."""
import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SPECIES = 9
LONGEST = 40


class Visits(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(88)
        self.kind = rng.integers(0, SPECIES, count)
        self.traces = []
        for kind in self.kind:
            length = rng.integers(32, LONGEST + 1)
            t = np.arange(length)[:, None]
            beat = np.sin(t * (0.2 + 0.1 * kind) + rng.random(6))
            self.traces.append((beat + 0.5 * rng.normal(size=(length, 6))).astype(np.float32))

    def __len__(self):
        return len(self.kind)

    def __getitem__(self, i):
        return {"trace": self.traces[i], "kind": int(self.kind[i])}


def put_together(visits):
    batch = torch.zeros(len(visits), LONGEST, 6)
    there = torch.zeros(len(visits), LONGEST)
    for b, visit in enumerate(visits):
        for t, row in enumerate(visit["trace"]):
            for c, value in enumerate(row):
                batch[b, t, c] = float(value)
            there[b, t] = 1
    return batch, there, torch.tensor([v["kind"] for v in visits])


class Listener(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.up = nn.Linear(6, width)
        self.mix = nn.TransformerEncoderLayer(width, 4, 96, batch_first=True)
        self.say = nn.Linear(width, SPECIES)

    def forward(self, batch, there):
        h = self.mix(self.up(batch), src_key_padding_mask=there == 0)
        return self.say((h * there[:, :, None]).sum(1) / there.sum(1, keepdim=True))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=5)
    ap.add_argument("--visits", type=int, default=1280)
    a = ap.parse_args()
    torch.manual_seed(88)
    loader = DataLoader(Visits(a.visits), batch_size=32, shuffle=True, collate_fn=put_together)
    net = Listener()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    began = time.perf_counter()
    for epoch in range(a.epochs):
        right = 0
        for batch, there, kind in loader:
            out = net(batch, there)
            loss = nn.functional.cross_entropy(out, kind)
            opt.zero_grad()
            loss.backward()
            opt.step()
            right += (out.argmax(1) == kind).sum().item()
        print(f"epoch {epoch}: {right / a.visits:.3f}")
    print(f"{time.perf_counter() - began:.2f} s, cpu {time.process_time():.2f}")


if __name__ == "__main__":
    main()
