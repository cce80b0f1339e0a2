# truth: data_loading_bound
# about: every scrap of papyrus is asked for by one request to the museum's remote store (its latency is a sleep of 3 to 4 ms), and the loader has no workers, so the requests of a batch are made one after the other while the network waits
# also: io_wait
# advice: num_workers
# cure: --workers 6
# whatif: workers=6
# needs: torch numpy
# my first pytorch project :)  which century is a scrap of papyrus from?
import argparse
import os
import shutil
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()

torch.manual_seed(3)
torch.set_num_threads(1)
rng = np.random.default_rng(3)

# the scraps: 800 small grey pictures
folder = tempfile.mkdtemp(prefix="papyri")
N = 800
century = rng.integers(0, 5, N)
pictures = rng.normal(110, 25, (N, 48, 48))
for i in range(N):
    pictures[i, :: 3 + century[i], :] -= 40  # fibres are laid closer in later centuries
pictures = pictures.clip(0, 255).astype(np.uint8)
for i in range(N):
    pictures[i].tofile(os.path.join(folder, "inv_%04d.raw" % i))


def download(number):
    # the museum's server answers in three or four milliseconds
    time.sleep(0.003 + 0.001 * ((number * 37) % 11) / 10)
    with open(os.path.join(folder, "inv_%04d.raw" % number), "rb") as f:
        return f.read()


class PapyrusDataset(Dataset):
    def __init__(self, numbers):
        self.numbers = numbers

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, idx):
        n = int(self.numbers[idx])
        img = np.frombuffer(download(n), dtype=np.uint8).reshape(1, 48, 48)
        img = torch.from_numpy(img.astype(np.float32)) / 255
        return img, int(century[n])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.fc1 = nn.Linear(16 * 10 * 10, 64)
        self.fc2 = nn.Linear(64, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        return self.fc2(x)


train_loader = DataLoader(PapyrusDataset(np.arange(N)), batch_size=16, shuffle=True, num_workers=args.workers,
                          persistent_workers=args.workers > 0)
net = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

try:
    start, steps = time.time(), 0
    for epoch in range(args.epochs):
        running_loss = 0.0
        for images, labels in train_loader:
            optimizer.zero_grad()
            outputs = net(images)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
            steps += 1
        print("epoch", epoch + 1, "loss", round(running_loss / len(train_loader), 3))
    print("finished:", steps, "steps in", round(time.time() - start, 2), "s")
finally:
    shutil.rmtree(folder)
