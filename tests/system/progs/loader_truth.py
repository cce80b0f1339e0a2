"""A training program that clocks its own data loading and prints the truth.

loader_truth.py WORKERS [START_METHOD]: every sample carries the time it took, so the main
process knows what its workers did. Sample 77 is slow by itself, sample 33 by a transform.
"""

import json
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

SLEEP_S, WORK_S, JITTER_S, COLLATE_S = 0.002, 0.002, 0.001, 0.003
SAMPLES, BATCH, EPOCHS = 120, 8, 2


def clock():
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def work(seconds):
    """Burns CPU time, however often others are given the core."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Work:
    def __call__(self, x):
        start = clock()
        work(WORK_S)
        x["work"] = clock() - start
        return x


class RandomJitter:
    def __call__(self, x):
        start = clock()
        time.sleep(0.12 if x["i"] == 33 else JITTER_S)
        x["jitter"] = clock() - start
        return x


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x


class Files(Dataset):
    def __init__(self):
        self.samples = [(f"/data/{i}.jpg", 0) for i in range(SAMPLES)]
        self.transform = Compose([Work(), RandomJitter()])

    def __len__(self):
        return SAMPLES

    def __getitem__(self, i):
        start, cpu = clock(), time.thread_time()
        time.sleep(0.15 if i == 77 else SLEEP_S)
        x = self.transform({"i": i})
        x["sample"] = clock() - start
        x["cpu"] = time.thread_time() - cpu
        return x


def collate(samples):
    start = clock()
    work(COLLATE_S)
    batch = {k: torch.tensor([s[k] for s in samples]) for k in samples[0]}
    batch["collate"] = clock() - start
    return batch


def main():
    workers = int(sys.argv[1])
    more = {"multiprocessing_context": sys.argv[2]} if len(sys.argv) > 2 else {}
    loader = DataLoader(
        Files(), BATCH, shuffle=True, num_workers=workers, collate_fn=collate, **more
    )
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    truth = dict.fromkeys(["sample", "cpu", "work", "jitter", "collate", "wait"], 0.0)
    truth["first"], slowest = [], []
    for _ in range(EPOCHS):
        start = asked = clock()
        for k, batch in enumerate(loader):
            truth["wait"] += clock() - asked
            if k == 0:
                truth["first"].append(clock() - start)
            for key in ("sample", "cpu", "work", "jitter"):
                truth[key] += float(batch[key].double().sum())
            truth["collate"] += batch["collate"]
            slowest += zip(batch["sample"].tolist(), batch["i"].tolist())
            optimizer.zero_grad()
            model(batch["i"].float().unsqueeze(1)).mean().backward()
            optimizer.step()
            time.sleep(0.004)
            asked = clock()
    truth["slowest"] = sorted(slowest, reverse=True)[:6]
    print(json.dumps(truth))


if __name__ == "__main__":
    main()
