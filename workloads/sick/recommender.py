# truth: data_loading_bound
# about: every interaction asks a remote feature store (the request's latency is a sleep of 3 ms) and the loader asks from the main process, one after the other
# also: io_wait
# advice: num_workers
# cure: --loaders 4
# whatif: workers=4
# needs: torch numpy
"""Two-tower recommender: sqlite holds the interactions, user features come over the network."""
import argparse
import os
import random
import sqlite3
import tempfile
import time
import warnings

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

# the workers wait for the network, there may be more of them than cores
warnings.filterwarnings("ignore", message="This DataLoader will create")

N_USERS, N_ITEMS, N_ROWS = 5000, 20000, 1760


def create_database(path):
    rng = random.Random(7)
    db = sqlite3.connect(path)
    db.execute("create table clicks (id integer primary key, user integer, item integer, stars real)")
    db.executemany(
        "insert into clicks values (?, ?, ?, ?)",
        ((i, rng.randrange(N_USERS), rng.randrange(N_ITEMS), rng.random() * 5) for i in range(N_ROWS)),
    )
    db.commit()
    db.close()


class FeatureStore:
    """Client of the key-value service. Here a local table answers after a round trip's time."""

    def __init__(self):
        self.table = np.random.default_rng(1).standard_normal((N_USERS, 16)).astype(np.float32)

    def get(self, user):
        time.sleep(0.003)  # round trip to the service
        return self.table[user]


class Clicks(Dataset):
    def __init__(self, path):
        self.path = path
        self.db = None
        self.pid = None
        self.store = FeatureStore()

    def connection(self):
        if self.pid != os.getpid():  # sqlite connections do not survive a fork
            self.db, self.pid = sqlite3.connect(self.path), os.getpid()
        return self.db

    def __len__(self):
        return N_ROWS

    def __getitem__(self, row):
        user, item, stars = self.connection().execute(
            "select user, item, stars from clicks where id = ?", (row,)
        ).fetchone()
        return user, item, torch.from_numpy(self.store.get(user)), np.float32(stars)


class TwoTowers(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.users = nn.Embedding(N_USERS, dim, sparse=True)
        self.items = nn.Embedding(N_ITEMS, dim, sparse=True)
        self.left = nn.Sequential(nn.Linear(dim + 16, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, dim))
        self.right = nn.Sequential(nn.Linear(dim, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, dim))

    def forward(self, user, item, features):
        u = self.left(torch.cat([self.users(user), features], dim=1))
        v = self.right(self.items(item))
        return (u * v).sum(dim=1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--loaders", type=int, default=0)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--epochs", type=int, default=1)
    opt = p.parse_args()
    torch.manual_seed(11)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "clicks.db")
        create_database(path)
        loader = DataLoader(Clicks(path), batch_size=opt.batch_size, shuffle=True, num_workers=opt.loaders)
        net = TwoTowers()
        dense = [q for n, q in net.named_parameters() if not n.startswith(("users", "items"))]
        optimizers = [
            torch.optim.SparseAdam([net.users.weight, net.items.weight], lr=1e-3),
            torch.optim.Adam(dense, lr=1e-3),
        ]
        for epoch in range(opt.epochs):
            total = 0.0
            for user, item, features, stars in loader:
                loss = nn.functional.mse_loss(net(user, item, features), stars)
                for o in optimizers:
                    o.zero_grad()
                loss.backward()
                for o in optimizers:
                    o.step()
                total += loss.item()
            print(f"epoch {epoch}: mse {total / len(loader):.3f}")


if __name__ == "__main__":
    main()
