# truth: evaluation_heavy
# about: the whole validation set is evaluated after every tenth step
# cure: --every 200
# whatif: evaluation=20
# gain: run
# needs: torch
import argparse

import torch
from torch.utils.data import DataLoader, TensorDataset


def accuracy(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in loader:
            right += int((model(x).argmax(1) == y).sum())
    model.train()
    return right / len(loader.dataset)


def data(count):
    return TensorDataset(torch.randn(count, 128), torch.randint(10, (count,)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train = DataLoader(data(25_600), batch_size=128, shuffle=True)
    valid = DataLoader(data(8_192), batch_size=256)
    model = torch.nn.Sequential(torch.nn.Linear(128, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (x, y) in enumerate(train, 1):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % args.every == 0:
            accuracy(model, valid)


if __name__ == "__main__":
    main()
