# truth: padding_waste
# about: verses and whole prose chapters are drawn together and padded to the longest of the batch; three quarters of what the encoder computes is padding
# cure: --draw alike
# needs: torch
"""Which saga does a passage come from? Self-attention over letters, passages from 12 to 300 letters long."""
import argparse
import random
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, Sampler

LETTERS, SAGAS, BATCH, WIDTH = 40, 8, 16, 64


class Passages(Dataset):
    def __init__(self, count):
        dice = torch.Generator().manual_seed(19)
        chance = random.Random(19)
        self.items = []
        for _ in range(count):
            long = chance.randint(220, 300) if chance.random() < 0.12 else chance.randint(12, 48)
            saga = chance.randrange(SAGAS)
            text = (torch.randint(1, LETTERS, (long,), generator=dice) + saga * (torch.rand(long, generator=dice) < 0.3)) % LETTERS
            self.items.append((text.clamp(min=1), saga))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class Draw(Sampler):
    """Batches of passages: by chance, or of about equal length, the batches then in any order."""

    def __init__(self, passages, how):
        self.passages, self.how, self.dice = passages, how, random.Random(23)

    def __len__(self):
        return len(self.passages) // BATCH

    def __iter__(self):
        order = list(range(len(self.passages)))
        self.dice.shuffle(order)
        if self.how == "alike":
            order.sort(key=lambda i: len(self.passages[i][0]))
        groups = [order[k:k + BATCH] for k in range(0, len(order) - BATCH + 1, BATCH)]
        self.dice.shuffle(groups)
        return iter(groups)


def fit_together(items):
    return pad_sequence([t for t, _ in items], batch_first=True), torch.tensor([s for _, s in items])


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(LETTERS, WIDTH, padding_idx=0)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(WIDTH, SAGAS)

    def forward(self, text):
        blank = text == 0
        x = self.encoder(self.letters(text), src_key_padding_mask=blank)
        x = x.masked_fill(blank[..., None], 0).sum(1) / (~blank).sum(1, keepdim=True)
        return self.out(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--draw", choices=["chance", "alike"], default="chance")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--passages", type=int, default=640)
    options = parser.parse_args()
    torch.manual_seed(19)
    passages = Passages(options.passages)
    loader = DataLoader(passages, batch_sampler=Draw(passages, options.draw), collate_fn=fit_together)
    reader = Reader()
    optimizer = torch.optim.Adam(reader.parameters(), lr=1e-3)
    steps, filled, all_of_it = 0, 0, 0
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(options.epochs):
        for text, saga in loader:
            loss = nn.functional.cross_entropy(reader(text), saga)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            filled, all_of_it = filled + int((text > 0).sum()), all_of_it + text.numel()
    took = time.perf_counter() - began
    print(f"loss {loss.item():.3f}; letters {filled} in {all_of_it} places; {steps} steps, {1000 * took / steps:.2f} ms each, "
          f"{time.process_time() - cpu:.1f} s of CPU, {took:.2f} s")


if __name__ == "__main__":
    main()
