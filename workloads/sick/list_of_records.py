# truth: worker_memory_growth
# about: the data set is a list of small Python objects; workers that are forked copy its pages bit by bit, because reading an object writes its reference count
# also: memory_leak data_loading_bound preprocessing_bound too_many_workers collate_bound
# gain: none
# needs: torch
# options: --interval 0.25
import os

# OpenBLAS has threads of its own, which set_num_threads() does not reach; beside two workers on
# two cores they would be a second illness (measured: a quarter of the time).
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import torch
from torch.utils.data import DataLoader, Dataset


class Records(Dataset):
    def __init__(self, count):
        self.items = [{"name": f"sample number {i}", "values": [i, i + 1, i + 2]} for i in range(count)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        item = self.items[i]
        return torch.tensor([float(v % 97) for v in item["values"]] * 16), len(item["name"]) % 10


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Records(400_000), batch_size=500, shuffle=True, num_workers=2)
    model = torch.nn.Sequential(
        torch.nn.Linear(48, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(),
        torch.nn.Linear(512, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (x, y) in enumerate(loader):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 500:
            break


if __name__ == "__main__":
    main()
