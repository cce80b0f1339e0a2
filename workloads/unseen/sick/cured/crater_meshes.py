# truth: none
# about: the same graph joined by whole arrays: offsets added per mesh, doubled edges dropped by sorting their keys
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Ages of craters from their meshes: message passing on one big graph per batch."""
import dataclasses

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset


@dataclasses.dataclass
class Batch:
    points: Tensor   # every vertex of every mesh
    edges: Tensor    # 2 x edges, both directions
    owner: Tensor    # which mesh a vertex belongs to
    age: Tensor


def crater(rng, rings, spokes):
    """A bowl with a rim: worn down and filled in as it ages."""
    age = rng.random()
    r = np.repeat(np.linspace(0.1, 1.5, rings), spokes)
    a = np.tile(np.linspace(0, 2 * np.pi, spokes, endpoint=False), rings)
    depth = (1 - 0.8 * age) * np.where(r < 1, r ** 2 - 1, np.exp(-5 * (r - 1)) * 0.3)
    points = np.stack([r * np.cos(a), r * np.sin(a), depth + rng.normal(0, 0.02, len(r))], 1)
    faces = []
    for i in range(rings - 1):
        for j in range(spokes):
            p, q = i * spokes + j, i * spokes + (j + 1) % spokes
            faces += [(p, q, p + spokes), (q, q + spokes, p + spokes)]
    return points.astype(np.float32), np.array(faces), np.float32(age)


class Craters(Dataset):
    def __init__(self, count, seed=31):
        rng = np.random.default_rng(seed)
        self.meshes = [crater(rng, int(rng.integers(6, 10)), int(rng.integers(12, 20))) for _ in range(count)]

    def __len__(self):
        return len(self.meshes)

    def __getitem__(self, i):
        return self.meshes[i]


def join(meshes):
    sizes = [len(vertices) for vertices, _, _ in meshes]
    bases = np.concatenate([[0], np.cumsum(sizes)])
    faces = np.concatenate([f + base for (_, f, _), base in zip(meshes, bases)])
    sources = faces[:, [0, 1, 1, 2, 2, 0]].ravel()
    targets = faces[:, [1, 0, 2, 1, 0, 2]].ravel()
    keys = np.sort(sources * bases[-1] + targets)
    keys = keys[np.append(True, keys[1:] != keys[:-1])]
    return Batch(torch.from_numpy(np.concatenate([v for v, _, _ in meshes])),
                 torch.from_numpy(np.stack(np.divmod(keys, bases[-1]))),
                 torch.from_numpy(np.repeat(np.arange(len(meshes)), sizes)),
                 torch.tensor([float(age) for _, _, age in meshes]))


class MeshNet(nn.Module):
    def __init__(self, width=24, rounds=2):
        super().__init__()
        self.enter = nn.Linear(3, width)
        self.rounds = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(rounds))
        self.leave = nn.Linear(width, 1)

    def forward(self, batch):
        h = self.enter(batch.points).relu()
        source, target = batch.edges
        for layer in self.rounds:
            heard = torch.zeros_like(h).index_add_(0, target, h[source])
            h = h + layer(torch.cat([h, heard / 6], 1)).relu()
        pooled = h.new_zeros(len(batch.age), h.shape[1]).index_add_(0, batch.owner, h)
        return self.leave(pooled / 120).squeeze(1)


def main():
    torch.manual_seed(31)
    loader = DataLoader(Craters(1440), batch_size=24, shuffle=True, collate_fn=join,
                        num_workers=2, persistent_workers=True)
    net = MeshNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-4)
    for epoch in range(1, 5):
        running = 0.0
        for batch in loader:
            loss = nn.functional.mse_loss(net(batch), batch.age)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print("epoch", epoch, "mse", round(running / len(loader), 4))


if __name__ == "__main__":
    main()
