# Truth (tests/system/test_training_scripts.py reads it):
#   steps 24                      one pass over 192 records, 8 a batch
#   optimizer_steps 24
#   epochs 1
#   samples 192
#   workers 2
#   phases data_loading forward backward optimizer
#   absent evaluation checkpoint
#   larger data_loading 2 forward     workers wait 4 ms for every record
"""Stream records from "a remote store" with an IterableDataset and two workers."""
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Stream(IterableDataset):
    def __init__(self, records, width=16):
        self.records, self.width = records, width

    def __iter__(self):
        info = get_worker_info()
        start, stride = (info.id, info.num_workers) if info else (0, 1)
        for record in range(start, self.records, stride):
            time.sleep(0.004)  # the network
            g = torch.Generator().manual_seed(record)
            x = torch.randn(self.width, generator=g)
            yield x, x.sum()


def run():
    torch.manual_seed(0)
    loader = DataLoader(Stream(192), batch_size=8, num_workers=2)
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
    opt = torch.optim.RMSprop(model.parameters(), lr=0.01)
    seen = 0
    for i, (x, y) in enumerate(loader):
        opt.zero_grad()
        loss = nn.functional.smooth_l1_loss(model(x).squeeze(1), y)
        loss.backward()
        opt.step()
        seen += len(x)
        if i % 6 == 0:
            print(f"{seen} records, loss {loss.item():.6f}", flush=True)
    print("done after", seen)


if __name__ == "__main__":
    run()
