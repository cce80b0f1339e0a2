# truth: none
# about: a short run: a small network learns in eighty steps from data that is there already, and the process is over
# needs: torch numpy
"""Names the traditional pattern of a quilt block from its 9 x 9 patches of cloth."""
import numpy as np
import torch
from torch import nn

PATTERNS = 8

rng = np.random.default_rng(24)
torch.manual_seed(24)

templates = rng.integers(0, 6, (PATTERNS, 81))
pattern = rng.integers(0, PATTERNS, 8192)
patches = np.where(rng.random((8192, 81)) < 0.4, rng.integers(0, 6, (8192, 81)), templates[pattern])
x = nn.functional.one_hot(torch.from_numpy(patches), 6).flatten(1).float()
y = torch.from_numpy(pattern)

net = nn.Sequential(nn.Linear(81 * 6, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, PATTERNS))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for step in range(80):
    rows = torch.randint(0, len(x), (512,))
    loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print(f"loss {loss.item():.3f}, {(net(x).argmax(1) == y).float().mean():.1%} of the blocks named")
