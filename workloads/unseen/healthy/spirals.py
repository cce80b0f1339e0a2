# truth: none
# about: a short script that tells two spirals apart and looks at held-out points after every epoch, which takes a small part of its three seconds
# needs: torch
import math

import torch
from torch import nn

torch.manual_seed(3)


def spirals(n):
    t = torch.rand(n).sqrt() * 3 * math.pi
    side = torch.randint(0, 2, (n,))
    phase = t + side * math.pi
    xy = torch.stack([t * phase.cos(), t * phase.sin()], dim=1) / 10 + 0.02 * torch.randn(n, 2)
    return xy, side


train_x, train_y = spirals(8192)
test_x, test_y = spirals(1024)

model = nn.Sequential(
    nn.Linear(2, 256), nn.ReLU(),
    nn.Linear(256, 256), nn.ReLU(),
    nn.Linear(256, 256), nn.ReLU(),
    nn.Linear(256, 2),
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_fn = nn.CrossEntropyLoss()


def evaluate():
    model.eval()
    with torch.no_grad():
        hits = (model(test_x).argmax(1) == test_y).float().mean().item()
    model.train()
    return hits


for epoch in range(10):
    for rows in torch.randperm(len(train_x)).split(256):
        optimizer.zero_grad()
        loss = loss_fn(model(train_x[rows]), train_y[rows])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}: loss {loss.item():.3f}, held-out accuracy {evaluate():.3f}")
