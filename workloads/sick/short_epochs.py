# truth: epoch_boundary_stall
# or: too_many_workers
# about: twenty short epochs, and the loader starts its workers anew in each of them
# also: data_loading_bound too_many_workers
# advice: persistent_workers
# cure: --persistent
# gain: run
# needs: torch
import argparse

import torch
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--persistent", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(320, 256), torch.randint(0, 10, (320,)))
    loader = DataLoader(data, batch_size=32, num_workers=2, persistent_workers=args.persistent)
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(),
        torch.nn.Linear(1024, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(25):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
