# truth: gc_pauses
# about: somebody calls gc.collect() after every step to keep memory low, and each time the collector walks over hundreds of thousands of live objects
# cure: --every 1000
# needs: torch
import argparse
import gc

import torch


class Node:
    def __init__(self, value, parent):
        self.value = value
        self.parent = parent
        self.children = []


def grow(count):
    root = Node(0, None)
    nodes = [root]
    for i in range(1, count):
        parent = nodes[i // 2]
        node = Node(i, parent)
        parent.children.append(node)
        nodes.append(node)
    return nodes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    nodes = grow(80_000)
    model = torch.nn.Sequential(torch.nn.Linear(128, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 128))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(1, 81):
        x = torch.tensor([[float(n.value % 7)] * 128 for n in nodes[step : step + 64]])
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % args.every == 0:
            gc.collect()


if __name__ == "__main__":
    main()
