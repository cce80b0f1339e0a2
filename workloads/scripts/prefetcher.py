# Truth (tests/system/test_training_scripts.py reads it):
#   steps 20                      2 epochs of 10 batches
#   optimizer_steps 20
#   epochs 2
#   samples 156                   the last batch of an epoch is smaller
#   phases data_loading forward backward optimizer evaluation
"""A prefetcher that keeps one batch ahead of the model, as for CUDA streams."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class DataPrefetcher:
    def __init__(self, loader, device):
        self.loader = iter(loader)
        self.device = device
        self.preload()

    def preload(self):
        try:
            self.next_input, self.next_target = next(self.loader)
        except StopIteration:
            self.next_input = self.next_target = None
            return
        self.next_input = self.next_input.to(self.device, non_blocking=True)
        self.next_target = self.next_target.to(self.device, non_blocking=True)

    def next(self):
        input, target = self.next_input, self.next_target
        self.preload()
        return input, target


def main():
    torch.manual_seed(4)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = TensorDataset(torch.randn(78, 20), torch.randint(0, 3, (78,)))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    val_loader = DataLoader(data, batch_size=39)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 3)).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(2):
        model.train()
        prefetcher = DataPrefetcher(loader, device)
        input, target = prefetcher.next()
        while input is not None:
            loss = criterion(model(input), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            input, target = prefetcher.next()
        model.eval()
        with torch.no_grad():
            right = sum((model(x.to(device)).argmax(1).cpu() == y).sum().item() for x, y in val_loader)
        print(f"epoch {epoch}: loss {loss.item():.6f}, {right} of {len(data)} right")


if __name__ == "__main__":
    main()
