# truth: gil_contention
# about: a thread of the same process computes statistics in pure Python and holds the interpreter lock while the main thread wants to train
# cure: --quiet
# needs: torch
import argparse
import threading

import torch


def statistics(stop, lines):
    while not stop.is_set():
        total = 0
        for line in lines:
            total += sum(ord(c) for c in line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quiet", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    stop = threading.Event()
    thread = threading.Thread(target=statistics, args=(stop, ["abc" * 200] * 200), name="stats")
    if not args.quiet:
        thread.start()
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(8)])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(32, 64)
    for _ in range(60):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    stop.set()
    if not args.quiet:
        thread.join()


if __name__ == "__main__":
    main()
