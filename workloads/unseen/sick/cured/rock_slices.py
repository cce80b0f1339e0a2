# thin sections of rocks (granite, basalt, gneiss, marble)
import argparse
import os
import shutil
import tempfile
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=10)
args = parser.parse_args()

torch.manual_seed(0)
np.random.seed(0)
torch.set_num_threads(2)

# make pictures
N = 960
y = np.random.randint(0, 4, N)
X = np.random.rand(N, 1, 64, 64).astype("float32")
for i in range(N):
    if y[i] == 0:
        X[i, 0, ::6, ::6] += 1.0
    elif y[i] == 1:
        X[i, 0] *= 0.5
    elif y[i] == 2:
        X[i, 0, ::8] += 0.7
    else:
        X[i, 0] = X[i, 0] ** 0.3
X = torch.tensor(X)
y = torch.tensor(y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 24, 5, padding=2)
        self.c2 = nn.Conv2d(24, 32, 3)
        self.fc = nn.Linear(32 * 15 * 15, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.c2(x)), 2)
        return self.fc(x.flatten(1))


folder = tempfile.mkdtemp()
hard = []


def keep_hardest(pictures, losses):
    worst = losses.argmax().item()
    fd, path = tempfile.mkstemp(suffix=".npy", dir=folder)
    os.close(fd)
    np.save(path, pictures[worst].numpy())
    hard.append(path)


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
t0 = time.time()
for epoch in range(args.epochs):
    order = torch.randperm(N)
    for b in range(0, N, 32):
        idx = order[b:b + 32]
        losses = F.cross_entropy(net(X[idx]), y[idx], reduction="none")
        opt.zero_grad()
        losses.mean().backward()
        opt.step()
        keep_hardest(X[idx], losses.detach())
    print("epoch", epoch, "loss", losses.mean().item())

# look at the hard ones
mean = np.mean([np.load(p).mean() for p in hard])
print(len(hard), "hard pictures, mean brightness", mean)
print("time", time.time() - t0, "cpu", time.process_time())
shutil.rmtree(folder)
