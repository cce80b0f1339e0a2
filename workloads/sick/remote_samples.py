# truth: data_loading_bound
# about: every sample waits some milliseconds for a store over the network (a sleep stands for the request), and the loader has no workers, so the waits come one after the other
# also: io_wait preprocessing_bound
# advice: num_workers
# cure: --workers 8
# whatif: workers=8
# needs: torch
import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Remote(Dataset):
    def __init__(self, count):
        self.data = torch.randn(count, 64)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        time.sleep(0.004)  # the answer of the store
        return self.data[i], i % 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Remote(800), batch_size=8, shuffle=True, num_workers=args.workers)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
