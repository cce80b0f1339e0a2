# truth: evaluation_heavy
# about: after every epoch of five small sampled batches the whole graph is inferred layer by layer and scored on all three splits, which takes longer than the epoch's training
# cure: --eval-every 10
# whatif: evaluation=10
# gain: run
# needs: torch numpy
"""Which good did a caravanserai live from?  Node classification on the road graph (mean-aggregating GNN)."""
import argparse

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

TOWNS, ROADS, FEATURES, GOODS = 14000, 60000, 64, 11


def silk_roads(seed):
    rng = np.random.default_rng(seed)
    good = rng.integers(0, GOODS, TOWNS)
    a = rng.integers(0, TOWNS, ROADS)
    by_good = [np.flatnonzero(good == g) for g in range(GOODS)]
    b = np.where(rng.random(ROADS) < 0.6, [by_good[good[i]][rng.integers(len(by_good[good[i]]))] for i in a],
                 rng.integers(0, TOWNS, ROADS))
    x = rng.normal(0, 1, (TOWNS, FEATURES)).astype(np.float32)
    x[:, :GOODS] += 0.6 * np.eye(GOODS, dtype=np.float32)[good]
    src, dst = np.concatenate([a, b]), np.concatenate([b, a])
    order = np.argsort(dst, kind="stable")
    src, dst = src[order], dst[order]
    ptr = np.searchsorted(dst, np.arange(TOWNS + 1))
    return x, good, src, dst, ptr


class Atlas:
    def __init__(self, seed=1271):
        x, good, self.src, self.dst, self.ptr = silk_roads(seed)
        self.x, self.good = torch.from_numpy(x), torch.from_numpy(good)
        self.degree = np.maximum(np.diff(self.ptr), 1)
        self.rng = np.random.default_rng(seed)
        share = self.rng.permutation(TOWNS)
        self.split = {"train": share[:2600], "valid": share[2600:9000], "test": share[9000:]}
        value = torch.from_numpy((1.0 / self.degree[self.dst]).astype(np.float32))
        where = torch.from_numpy(np.stack([self.dst, self.src]))
        self.mean = torch.sparse_coo_tensor(where, value, (TOWNS, TOWNS)).coalesce()

    def neighbours(self, nodes, fan):
        """fan neighbours with replacement for each node: (len(nodes), fan)"""
        pick = (self.rng.random((len(nodes), fan)) * self.degree[nodes][:, None]).astype(np.int64)
        at = np.minimum(self.ptr[nodes][:, None] + pick, len(self.src) - 1)
        return self.src[at]


class Sage(nn.Module):
    def __init__(self, hidden=192):
        super().__init__()
        self.own = nn.ModuleList([nn.Linear(FEATURES, hidden), nn.Linear(hidden, hidden)])
        self.near = nn.ModuleList([nn.Linear(FEATURES, hidden, bias=False), nn.Linear(hidden, hidden, bias=False)])
        self.out = nn.Linear(hidden, GOODS)

    def forward(self, x0, x1, x2):
        """features of the seeds (n,f), of their neighbours (n,k,f), of those' neighbours (n,k,m,f)"""
        h1 = F.relu(self.own[0](x1) + self.near[0](x2.mean(2)))
        h0 = F.relu(self.own[0](x0) + self.near[0](x1.mean(1)))
        return self.out(F.relu(self.own[1](h0) + self.near[1](h1.mean(1))))

    @torch.no_grad()
    def inference(self, atlas):
        h = atlas.x
        for own, near in zip(self.own, self.near):
            h = F.relu(own(h) + near(torch.sparse.mm(atlas.mean, h)))
        return self.out(h)


def train_epoch(net, opt, atlas, batch=520, fan=(10, 5)):
    net.train()
    for seeds in np.array_split(atlas.rng.permutation(atlas.split["train"]), len(atlas.split["train"]) // batch):
        one = atlas.neighbours(seeds, fan[0])
        two = atlas.neighbours(one.ravel(), fan[1]).reshape(len(seeds), *fan)
        logits = net(atlas.x[seeds], atlas.x[one], atlas.x[two])
        loss = F.cross_entropy(logits, atlas.good[seeds])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def test(net, atlas):
    net.eval()
    score = {}
    for name, nodes in atlas.split.items():
        guess = net.inference(atlas)[nodes].argmax(1)
        score[name] = (guess == atlas.good[nodes]).float().mean().item()
    return score


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=20)
    ap.add_argument("--eval-every", type=int, default=1)
    opt_ = ap.parse_args()
    torch.manual_seed(1295)
    atlas = Atlas()
    net = Sage()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(1, opt_.epochs + 1):
        loss = train_epoch(net, opt, atlas)
        if epoch % opt_.eval_every == 0:
            score = test(net, atlas)
            print(f"epoch {epoch:2d} loss {loss:.3f} " + " ".join(f"{k} {v:.3f}" for k, v in score.items()))


if __name__ == "__main__":
    main()
