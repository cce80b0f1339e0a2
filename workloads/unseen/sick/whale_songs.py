# truth: padding_waste
# about: songs of very different length are put together at random and filled up to the longest of the batch, so most of what the network computes on is padding
# cure: cured/whale_songs.py
# needs: torch numpy
"""Tells pods of whales apart by their songs, which are transcribed to sequences of calls."""
import argparse
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

CALLS, PODS = 60, 5


def transcribe(path, songs, seed):
    """A text file: the pod, a tab, the calls."""
    rng = np.random.default_rng(seed)
    habits = rng.dirichlet(np.full(CALLS - 1, 0.5), size=PODS)
    with open(path, "w") as out:
        for _ in range(songs):
            pod = int(rng.integers(PODS))
            length = int(np.clip(rng.lognormal(3.4, 1.0), 6, 700))
            calls = rng.choice(np.arange(1, CALLS), size=length, p=habits[pod])
            out.write(f"{pod}\t{' '.join(map(str, calls))}\n")


class Songs(Dataset):
    def __init__(self, path):
        self.songs = []
        with open(path) as lines:
            for line in lines:
                pod, calls = line.rstrip("\n").split("\t")
                self.songs.append((torch.tensor([int(call) for call in calls.split()]), int(pod)))

    def __len__(self):
        return len(self.songs)

    def __getitem__(self, number):
        return self.songs[number]


def together(songs):
    """A batch: calls filled up with 0, lengths, pods."""
    calls = pad_sequence([calls for calls, _ in songs], batch_first=True)
    return calls, torch.tensor([len(calls) for calls, _ in songs]), torch.tensor([pod for _, pod in songs])


class Listener(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.embed = nn.Embedding(CALLS, width, padding_idx=0)
        self.layers = nn.ModuleList([nn.Conv1d(width, width, 5, padding=2) for _ in range(layers)])
        self.out = nn.Linear(width, PODS)

    def forward(self, calls, lengths):
        mask = (torch.arange(calls.shape[1])[None, :] < lengths[:, None]).unsqueeze(1).float()
        x = self.embed(calls).transpose(1, 2)
        for layer in self.layers:
            x = (x + torch.relu(layer(x))) * mask
        return self.out(x.sum(2) / lengths[:, None])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--songs", type=int, default=1280)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=48)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=6)
    args = parser.parse_args()

    torch.manual_seed(13)
    with tempfile.TemporaryDirectory(prefix="whales") as folder:
        path = os.path.join(folder, "songs.tsv")
        transcribe(path, args.songs, seed=13)
        songs = Songs(path)
    loader = DataLoader(songs, batch_size=args.batch, shuffle=True, collate_fn=together)
    model = Listener(args.width, args.layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        right = 0
        for calls, lengths, pods in loader:
            scores = model(calls, lengths)
            loss = nn.functional.cross_entropy(scores, pods)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += int((scores.argmax(1) == pods).sum())
        print(f"epoch {epoch}: {right / len(songs):.1%}")


if __name__ == "__main__":
    main()
