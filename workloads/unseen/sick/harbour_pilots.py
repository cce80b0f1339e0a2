#!/usr/bin/env python3
# truth: gil_contention
# about: while the arrival model trains, a thread of the same interpreter decodes the ships' position messages bit by bit in pure Python to keep the harbour's chart, and the trainer has to wait for the GIL after nearly every operation; cured, the decoder is a process of its own
# cure: --chart process
# needs: torch cores:2
"""Hours until a ship needs its pilot, learnt from past calls, beside the decoder of AIS messages that keeps the live chart."""
import argparse
import collections
import multiprocessing
import random
import threading
import time

import torch
from torch import nn

ALPHABET = "0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVW`abcdefghijklmnopqrstuvw"


def armour(bits):
    return "".join(ALPHABET[int(bits[i:i + 6], 2)] for i in range(0, len(bits), 6))


def recorded_messages(count):
    rng = random.Random(9)
    lines = []
    for _ in range(count):
        fields = [(1, 6), (0, 2), (rng.randrange(200_000_000, 200_000_400), 30), (0, 4), (128, 8), (rng.randrange(300), 10),
                  (0, 1), (rng.randrange(1 << 27), 28), (rng.randrange(1 << 26), 27), (rng.randrange(3600), 12), (511, 9),
                  (rng.randrange(60), 6), (0, 2), (0, 23)]
        body = "AIVDM,1,1,,A," + armour("".join(format(value, f"0{width}b") for value, width in fields)) + ",0"
        check = 0
        for letter in body:
            check ^= ord(letter)
        lines.append(f"!{body}*{check:02X}")
    return lines


def decode(line):
    body, check = line[1:].split("*")
    found = 0
    for letter in body:
        found ^= ord(letter)
    if found != int(check, 16):
        return None
    value = 0
    for letter in body.split(",")[5]:
        value = value << 6 | ALPHABET.index(letter)
    return value >> 130 & (1 << 30) - 1, value >> 79 & (1 << 28) - 1, value >> 52 & (1 << 27) - 1


def keep_chart(lines, done):
    """Replays the day's messages, again and again, into the tracks of the ships."""
    tracks = {}
    at = 0
    while not done.is_set():
        for line in lines[at:at + 200]:
            ship, east, north = decode(line)
            track = tracks.setdefault(ship, collections.deque(maxlen=20))
            track.append((east / 600000.0, north / 600000.0))
        at = (at + 200) % len(lines)


class Arrival(nn.Module):
    def __init__(self, width=384):
        super().__init__()
        self.port = nn.Embedding(300, 32)
        self.body = nn.Sequential(nn.Linear(24 + 32, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, port, x):
        return self.body(torch.cat([self.port(port), x], 1)).squeeze(1)


def train(steps):
    torch.manual_seed(4)
    calls = 8192
    port = torch.randint(0, 300, (calls,))
    features = torch.randn(calls, 24)
    hours = features[:, :5].sum(1) + torch.sin(port.float()) + 0.1 * torch.randn(calls)
    model = Arrival()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    begin = time.perf_counter()
    for step in range(steps):
        rows = torch.randint(0, calls, (1024,))
        loss = nn.functional.mse_loss(model(port[rows], features[rows]), hours[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 24:
            print(f"step {step + 1}: {loss.item():.3f}")
    took = time.perf_counter() - begin
    print(f"{steps} steps, {took:.2f} s, {1e3 * took / steps:.1f} ms a step")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--chart", choices=("thread", "process"), default="thread")
    parser.add_argument("--steps", type=int, default=80)
    args = parser.parse_args()
    torch.set_num_threads(1)  # the other core is the chart's
    lines = recorded_messages(4000)
    if args.chart == "thread":
        done = threading.Event()
        chart = threading.Thread(target=keep_chart, args=(lines, done), name="chart")
    else:
        done = multiprocessing.Event()
        chart = multiprocessing.Process(target=keep_chart, args=(lines, done), name="chart")
    chart.start()
    try:
        train(args.steps)
    finally:
        done.set()
        chart.join()


if __name__ == "__main__":
    main()
