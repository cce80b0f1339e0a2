# truth: logging_stall
# about: after every step each forecast of the batch goes to the log file as a record of its own, and the handler flushes after each record
# cure: --note-every 25
# whatif: logging=25
# needs: torch numpy
"""How much of each bread will the shops order tomorrow: LSTM over the last five weeks."""
import argparse
import logging
import os
import shutil
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DAYS, BREADS = 35, 12


def keep_books(path, shops, days, seed):
    rng = np.random.default_rng(seed)
    week = 1 + 0.5 * np.sin(np.arange(days) * 2 * np.pi / 7)
    base = rng.uniform(1, 5, (shops, 1, BREADS))
    orders = base * week[None, :, None] + rng.normal(0, 0.3, (shops, days, BREADS))
    np.savetxt(path, orders.reshape(shops, -1).astype(np.float32), fmt="%.2f", delimiter=",")


def windows(path, days):
    orders = np.loadtxt(path, delimiter=",", dtype=np.float32)
    orders = torch.from_numpy(orders).reshape(len(orders), days, BREADS)
    pieces = orders.unfold(1, DAYS + 1, 3)
    pieces = pieces.permute(0, 1, 3, 2).reshape(-1, DAYS + 1, BREADS)
    return TensorDataset(pieces[:, :DAYS].contiguous(), pieces[:, DAYS].contiguous())


class OrderNet(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.lstm = nn.LSTM(BREADS, hidden, num_layers=1, batch_first=True)
        self.out = nn.Linear(hidden, BREADS)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


class Baker:
    def __init__(self, model, lr, notes, note_every):
        self.model = model
        self.optimizer = torch.optim.RMSprop(model.parameters(), lr=lr)
        self.note_every = note_every
        self.log = logging.getLogger("bakery")
        self.log.setLevel(logging.INFO)
        self.log.propagate = False
        handler = logging.FileHandler(notes)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        self.log.addHandler(handler)
        self.step = 0

    def note(self, guess, actual, loss):
        self.log.info("step %d: loss %.5f", self.step, loss)
        for shop, (mine, theirs) in enumerate(zip(guess.tolist(), actual.tolist())):
            for bread in range(BREADS):
                self.log.info("shop %d bread %d: forecast %.2f ordered %.2f",
                              shop, bread, mine[bread], theirs[bread])

    def learn(self, past, actual):
        guess = self.model(past)
        loss = nn.functional.l1_loss(guess, actual)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1
        if self.step % self.note_every == 0:
            self.note(guess.detach(), actual, loss.item())
        return loss.detach()

    def close(self):
        for handler in list(self.log.handlers):
            handler.close()
            self.log.removeHandler(handler)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shops", type=int, default=120)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=40)
    parser.add_argument("--note-every", type=int, default=1)
    parser.add_argument("--seed", type=int, default=8)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    folder = tempfile.mkdtemp(prefix="bakery_")
    try:
        path = os.path.join(folder, "orders.csv")
        keep_books(path, options.shops, options.days, options.seed)
        loader = DataLoader(windows(path, options.days), batch_size=options.batch,
                            shuffle=True, drop_last=True)
        baker = Baker(OrderNet(options.hidden), 1e-3, os.path.join(folder, "notes.log"),
                      options.note_every)
        for epoch in range(options.epochs):
            losses = [baker.learn(past, actual) for past, actual in loader]
            print(f"epoch {epoch}: {torch.stack(losses).mean():.4f} in {len(losses)} steps")
        baker.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
