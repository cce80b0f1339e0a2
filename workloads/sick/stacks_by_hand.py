# truth: collate_bound
# about: the collate function copies every value of every sample through Python lists
# also: data_loading_bound preprocessing_bound
# cure: --stack
# needs: torch
import argparse

import torch
from torch.utils.data import DataLoader, TensorDataset


def by_hand(samples):
    rows = [[float(v) for v in x] for x, _ in samples]
    return torch.tensor(rows), torch.tensor([int(y) for _, y in samples])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stack", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.randn(1024, 1024), torch.randint(0, 10, (1024,)))
    collate = None if args.stack else by_hand
    loader = DataLoader(data, batch_size=16, num_workers=1, collate_fn=collate, persistent_workers=True)
    model = torch.nn.Sequential(torch.nn.Linear(1024, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
