# truth: none
# about: two workers keep up with the model
# needs: torch openblas
import torch
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self):
        return 2400

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.randn(512, generator=g), i % 10


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Noise(), batch_size=32, num_workers=1, persistent_workers=True)
    model = torch.nn.Sequential(
        torch.nn.Linear(512, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024), torch.nn.ReLU(),
        torch.nn.Linear(1024, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(2):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
