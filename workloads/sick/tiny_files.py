# truth: metadata_bound
# about: every sample is fifty tiny files that are opened, read and closed one by one
# or: small_reads
# also: data_loading_bound
# cure: --packed
# needs: torch
import argparse
import os
import tempfile

import torch
from torch.utils.data import DataLoader, Dataset

FILES, PARTS = 200, 50


class Scattered(Dataset):
    def __init__(self, folder, packed):
        self.folder, self.packed = folder, packed
        for i in range(FILES):
            os.makedirs(f"{folder}/{i}")
            whole = b""
            for k in range(PARTS):
                part = bytes([(i + k) % 256]) * 64
                whole += part
                with open(f"{folder}/{i}/{k}.bin", "wb") as f:
                    f.write(part)
            with open(f"{folder}/{i}/all.bin", "wb") as f:
                f.write(whole)

    def __len__(self):
        return FILES

    def __getitem__(self, i):
        if self.packed:
            with open(f"{self.folder}/{i}/all.bin", "rb") as f:
                data = f.read()
        else:
            parts = []
            for k in range(PARTS):
                fd = os.open(f"{self.folder}/{i}/{k}.bin", os.O_RDONLY)
                parts.append(os.read(fd, 4096))
                os.close(fd)
            data = b"".join(parts)
        return torch.frombuffer(bytearray(data), dtype=torch.uint8).float(), i % 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--packed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        loader = DataLoader(Scattered(folder, args.packed), batch_size=10, shuffle=True)
        model = torch.nn.Sequential(torch.nn.Linear(64 * PARTS, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
        for _ in range(20):
            for x, y in loader:
                loss = torch.nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


if __name__ == "__main__":
    main()
