# truth: fd_leak
# about: the data set opens a file for every sample and keeps the descriptor
# also: metadata_bound data_loading_bound
# gain: none
# needs: torch
import os
import tempfile

import torch
from torch.utils.data import DataLoader, Dataset


class Files(Dataset):
    def __init__(self, folder, count):
        self.paths = [os.path.join(folder, f"{i}.bin") for i in range(count)]
        for i, path in enumerate(self.paths):
            with open(path, "wb") as f:
                f.write(bytes([i % 256]) * 4096)
        self.open = []

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        fd = os.open(self.paths[i], os.O_RDONLY)
        self.open.append(fd)
        data = bytearray(os.read(fd, 4096))
        return torch.frombuffer(data, dtype=torch.uint8).float(), i % 10


def main():
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        loader = DataLoader(Files(folder, 800), batch_size=8)
        model = torch.nn.Sequential(torch.nn.Linear(4096, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
        for x, y in loader:
            for _ in range(2):
                loss = torch.nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


if __name__ == "__main__":
    main()
