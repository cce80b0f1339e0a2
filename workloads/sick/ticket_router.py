# truth: padding_waste
# about: support tickets are drawn at random into batches and padded to the longest one; a few pasted log files make every batch as long as they are, so most of what the encoder works on is padding
# cure: --bucketed
# needs: torch
"""Routes support tickets to one of eight teams with a small Transformer encoder."""
import argparse
import random
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

VOCAB, TEAMS, LONGEST = 4000, 8, 224


class Tickets(Dataset):
    def __init__(self, count, seed=11):
        gen = torch.Generator().manual_seed(seed)
        dice = random.Random(seed)
        self.texts, self.teams = [], []
        for _ in range(count):
            if dice.random() < 0.10:  # somebody pasted the log
                length = dice.randint(150, LONGEST)
            else:
                length = dice.randint(10, 36)
            team = dice.randrange(TEAMS)
            words = torch.randint(1, VOCAB, (length,), generator=gen)
            words[:: 5] = 1 + team * 7 + words[:: 5] % 7
            self.texts.append(words)
            self.teams.append(team)

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        return self.texts[i], self.teams[i]


def collate(samples):
    longest = max(len(words) for words, _ in samples)
    ids = torch.zeros(len(samples), longest, dtype=torch.long)
    mask = torch.zeros(len(samples), longest, dtype=torch.long)
    for row, (words, _) in enumerate(samples):
        ids[row, : len(words)] = words
        mask[row, : len(words)] = 1
    return {"input_ids": ids, "attention_mask": mask,
            "labels": torch.tensor([team for _, team in samples])}


class LengthBuckets(Sampler):
    """Batches of tickets that are about as long as each other, in random order."""

    def __init__(self, lengths, batch, seed):
        self.lengths, self.batch, self.dice = lengths, batch, random.Random(seed)

    def __len__(self):
        return len(self.lengths) // self.batch

    def __iter__(self):
        order = sorted(range(len(self.lengths)), key=lambda i: (self.lengths[i], self.dice.random()))
        batches = [order[k: k + self.batch] for k in range(0, len(order) - self.batch + 1, self.batch)]
        self.dice.shuffle(batches)
        return iter(batches)


class Router(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.words = nn.Embedding(VOCAB, width, padding_idx=0)
        self.places = nn.Embedding(LONGEST, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, TEAMS)

    def forward(self, input_ids, attention_mask):
        x = self.words(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        x = self.encoder(x, src_key_padding_mask=attention_mask == 0)
        kept = attention_mask.unsqueeze(-1).to(x.dtype)
        return self.head((x * kept).sum(1) / kept.sum(1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--bucketed", action="store_true")
    ap.add_argument("--epochs", type=int, default=2)
    a = ap.parse_args()
    torch.manual_seed(3)
    data = Tickets(24 * 36)
    if a.bucketed:
        loader = DataLoader(data, collate_fn=collate,
                            batch_sampler=LengthBuckets([len(t) for t in data.texts], 24, 5))
    else:
        loader = DataLoader(data, batch_size=24, shuffle=True, drop_last=True, collate_fn=collate)
    model = Router()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    begin, steps = time.perf_counter(), 0
    for epoch in range(a.epochs):
        total = 0.0
        for batch in loader:
            loss = nn.functional.cross_entropy(model(batch["input_ids"], batch["attention_mask"]), batch["labels"])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            steps += 1
        print(f"epoch {epoch}: loss {float(total) / len(loader):.3f}")
    took = time.perf_counter() - begin
    print(f"{steps} steps, {took:.2f} s, {1e3 * took / steps:.1f} ms a step")


if __name__ == "__main__":
    main()
