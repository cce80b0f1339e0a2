# truth: too_many_workers
# about: twenty workers for samples that two of them make in time; starting the others takes a good part of a short run
# or: epoch_boundary_stall
# also: data_loading_bound oversubscribed
# advice: num_workers
# cure: --workers 1
# gain: run
# needs: torch
import argparse

import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=20)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    count = 64 * 150
    data = TensorDataset(torch.randn(count, 64), torch.randint(10, (count,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=args.workers)
    model = torch.nn.Sequential(torch.nn.Linear(64, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
