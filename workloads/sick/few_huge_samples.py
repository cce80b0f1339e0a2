# truth: slow_samples
# about: one sample in a hundred is a huge document that takes a hundred times as long to parse, and the batches behind it wait
# also: data_loading_bound preprocessing_bound
# cure: --bounded
# needs: torch
import argparse
import json

import torch
from torch.utils.data import DataLoader, Dataset


class Documents(Dataset):
    def __init__(self, bounded):
        small = {"tokens": list(range(200))}
        large = {"tokens": list(range(200 if bounded else 400_000))}
        self.small, self.large = json.dumps(small), json.dumps(large)

    def __len__(self):
        return 6000

    def __getitem__(self, i):
        tokens = json.loads(self.large if i % 100 == 37 else self.small)["tokens"]
        values = [t % 251 for t in tokens][:200]
        return torch.tensor(values, dtype=torch.float32), i % 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bounded", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Documents(args.bounded), batch_size=16, shuffle=True, num_workers=1)
    model = torch.nn.Sequential(torch.nn.Linear(200, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
