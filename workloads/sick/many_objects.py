# truth: gc_pauses
# about: hundreds of thousands of small linked objects are alive, and every step makes some more, so the cyclic collector walks over all of them again and again
# cure: --freeze
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
    parser.add_argument("--freeze", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    gc.disable()
    nodes = grow(400_000)
    gc.enable()
    gc.set_threshold(700, 2, 2)
    if args.freeze:
        gc.freeze()
    model = torch.nn.Linear(128, 128)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(60):
        batch = [Node(i, nodes[i]) for i in range(3000)]
        x = torch.tensor([[float(n.value % 7)] * 128 for n in batch[:64]])
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
