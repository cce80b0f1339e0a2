# Truth (tests/system/test_training_scripts.py reads it):
#   steps 22                      the loader of 8 batches, cycled, until 22 are done
#   optimizer_steps 22
#   epochs 3                      two whole, one broken off
#   samples 352
#   phases data_loading forward backward optimizer evaluation checkpoint
#   larger evaluation 1 optimizer     4 validations of 40 batches
"""Train for a number of iterations; validate and save every few of them."""
import io
import itertools

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

MAX_ITERS, EVAL_INTERVAL = 22, 5


class Text(Dataset):
    """Windows of a long sequence of characters."""

    def __init__(self, length=24, n=208):
        self.data = (torch.arange(length + n + 1) ** 2) % 41
        self.length, self.n = length, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        window = self.data[i : i + self.length + 1]
        return window[:-1], window[1:]


class CharLM(nn.Module):
    def __init__(self, vocab=41, d=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.lstm = nn.LSTM(d, d, batch_first=True)
        self.head = nn.Linear(d, vocab)

    def forward(self, idx, targets=None):
        hidden, _ = self.lstm(self.embed(idx))
        logits = self.head(hidden)
        loss = None
        if targets is not None:
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return logits, loss


@torch.no_grad()
def estimate_loss(model, loader):
    model.eval()
    losses = []
    for x, y in loader:
        losses.append(model(x, y)[1].item())
    model.train()
    return sum(losses) / len(losses)


def main():
    torch.manual_seed(1337)
    train_set, val_set = random_split(Text(), [128, 80])
    train_loader = DataLoader(train_set, batch_size=16, shuffle=True, drop_last=True)
    val_loader = DataLoader(val_set, batch_size=2)
    model = CharLM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    done = 0
    for epoch in itertools.count():
        for x, y in train_loader:
            _, loss = model(x, y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            done += 1
            if done % EVAL_INTERVAL == 0:
                val = estimate_loss(model, val_loader)
                print(f"iter {done} (epoch {epoch}): train {loss.item():.6f} val {val:.6f}")
                torch.save({"model": model.state_dict(), "iter": done}, io.BytesIO())
            if done == MAX_ITERS:
                return


if __name__ == "__main__":
    main()
