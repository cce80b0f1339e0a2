# truth: batch_too_small
# about: every step trains on a single small sample, so the interpreter and the framework take longer than the arithmetic
# also: optimizer_bound
# cure: --batch 64
# whatif: batch=64
# gain: run
# needs: torch openblas
import argparse

import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(16000, 32), torch.randint(0, 10, (16000,)))
    loader = DataLoader(data, batch_size=args.batch, shuffle=True)
    model = torch.nn.Sequential(
        *[torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU()) for _ in range(8)],
        torch.nn.Linear(32, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
