# truth: gil_contention
# about: a statistics thread of the same process compares recent predictions with the timetable in pure Python nearly all the time, and the training thread waits for the GIL after every call into torch
# also: cpu_saturated
# cure: cured/signal_boxes.py
# needs: torch numpy
"""Delay classes of trains from the last 16 signal-box passages (GRU), with a live table of confusions beside it."""
import multiprocessing
import time
from collections import deque

import numpy as np
import torch

BOXES = 64
CLASSES = 5
STEPS = 100


def passages(rng, n):
    boxes = rng.integers(0, BOXES, size=(n, 16))
    minutes = rng.normal(size=(n, 16, 1)).astype(np.float32)
    late = np.clip((minutes.sum((1, 2)) / 3 + 2.5), 0, CLASSES - 1).astype(np.int64)
    return torch.from_numpy(boxes), torch.from_numpy(minutes), torch.from_numpy(late)


class DelayNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.where = torch.nn.Embedding(BOXES, 24)
        self.cell = torch.nn.GRUCell(25, 64)
        self.out = torch.nn.Linear(64, CLASSES)

    def forward(self, boxes, minutes):
        x = torch.cat([self.where(boxes), minutes], 2)
        h = x.new_zeros(len(x), 64)
        for at in range(x.shape[1]):
            h = self.cell(x[:, at], h)
        return self.out(h)


def kendall(pairs):
    """Agreement of the predicted and the true order of delays."""
    agree = against = 0
    for i, (p, t) in enumerate(pairs):
        for q, u in pairs[i + 1:]:
            s = (p - q) * (t - u)
            if s > 0:
                agree += 1
            elif s < 0:
                against += 1
    return (agree - against) / max(1, agree + against)


class LiveTable(multiprocessing.Process):
    def __init__(self):
        super().__init__(daemon=True)
        self.inbox = multiprocessing.SimpleQueue()
        self.value = multiprocessing.Value("d", 0.0)
        self.over = multiprocessing.Event()

    @property
    def tau(self):
        return self.value.value

    def add(self, predicted, true):
        self.inbox.put((predicted, true))

    def run(self):
        recent = deque(maxlen=1600)
        while not self.over.is_set():
            while not self.inbox.empty():
                recent.extend(zip(*self.inbox.get()))
            pairs = list(recent)
            if len(pairs) < 100:
                time.sleep(0.02)
                continue
            self.value.value = kendall(pairs)
            time.sleep(0.005)


def main():
    torch.manual_seed(6)
    torch.set_num_threads(1)
    rng = np.random.default_rng(6)
    boxes, minutes, late = passages(rng, 4000)
    net = DelayNet()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    table = LiveTable()
    table.start()
    for step in range(STEPS):
        pick = torch.from_numpy(rng.integers(0, len(late), size=128))
        logits = net(boxes[pick], minutes[pick])
        loss = torch.nn.functional.cross_entropy(logits, late[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        table.add(logits.argmax(1).tolist(), late[pick].tolist())
        if step % 25 == 24:
            print(f"step {step + 1} loss {loss.item():.3f} tau {table.tau:+.3f}")
    table.over.set()
    table.join()


if __name__ == "__main__":
    main()
