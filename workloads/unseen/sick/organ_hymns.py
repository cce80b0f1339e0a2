# truth: padding_waste
# about: hymns are drawn at random whatever their length and filled up to the longest of the batch; since a few run over many pages, most of what the network reads is filling
# cure: cured/organ_hymns.py
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Names the composer of a hymn from its note events (gated dilated convolutions over tokens)."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

NOTES = 180
COMPOSERS = 9
BATCH = 16
EPOCHS = 4


class HymnBook(Dataset):
    def __init__(self, hymns=720, seed=1738):
        rng = np.random.default_rng(seed)
        self.lengths = np.clip(np.exp(rng.normal(4.3, 1.0, hymns)), 16, 1600).astype(int)
        self.composer = rng.integers(0, COMPOSERS, hymns)
        self.hymns = []
        for length, who in zip(self.lengths, self.composer):
            walk = np.cumsum(rng.integers(-3, 4, length)) + 12 * who + 30
            self.hymns.append(torch.from_numpy(1 + walk % (NOTES - 1)))

    def __len__(self):
        return len(self.hymns)

    def __getitem__(self, i):
        return self.hymns[i], self.composer[i]


def fill(items):
    hymns, composers = zip(*items)
    return pad_sequence(hymns, batch_first=True), torch.tensor(np.array(composers))


class Block(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.conv = nn.Conv1d(width, 2 * width, 3, padding=dilation, dilation=dilation)

    def forward(self, x):
        a, b = self.conv(x).chunk(2, 1)
        return x + torch.tanh(a) * torch.sigmoid(b)


class Listener(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.note = nn.Embedding(NOTES, width, padding_idx=0)
        self.blocks = nn.ModuleList([Block(width, 1), Block(width, 3), Block(width, 9)])
        self.name = nn.Linear(width, COMPOSERS)

    def forward(self, notes):
        sounding = (notes != 0).unsqueeze(1)
        x = self.note(notes).transpose(1, 2)
        for block in self.blocks:
            x = block(x) * sounding
        return self.name(x.sum(2) / sounding.sum(2))


class Trainer:
    def __init__(self):
        torch.manual_seed(1738)
        self.book = HymnBook()
        self.loader = DataLoader(self.book, batch_size=BATCH, shuffle=True, collate_fn=fill)
        self.model = Listener()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-3)

    def epoch(self):
        right = 0
        for notes, composer in self.loader:
            logits = self.model(notes)
            loss = F.cross_entropy(logits, composer)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            right += (logits.argmax(1) == composer).sum().item()
        return right / len(self.book)


if __name__ == "__main__":
    trainer = Trainer()
    for number in range(EPOCHS):
        print(f"epoch {number + 1}/{EPOCHS}: {100 * trainer.epoch():.1f} % right")
