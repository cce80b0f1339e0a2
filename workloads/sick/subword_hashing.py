# truth: preprocessing_bound
# about: the character n-grams of every comment are hashed byte by byte in Python; both cores have a worker already and still the model waits
# also: data_loading_bound
# cure: --hasher array
# whatif: transform=31
# needs: torch numpy cores:2
"""fastText-like language identification on lines of text, subwords hashed on the fly."""
import argparse
import gzip
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BUCKETS = 1 << 14
NGRAMS = (3, 4, 5, 6)
LINES = 2560


def write_corpus(path):
    rng = np.random.default_rng(3)
    alphabets = ["etaoin shrdlu", "aeinrst uldogm", "oaiesnr ltcdp ", "kxzqwyvjh fbg "]
    with gzip.open(path, "wt") as f:
        for _ in range(LINES):
            label = int(rng.integers(len(alphabets)))
            letters = np.array(list(alphabets[label]))
            f.write(f"{label}\t{''.join(rng.choice(letters, size=int(rng.integers(1000, 1200))))}\n")


def hash_loop(text):
    data = text.encode()
    ids = []
    for n in NGRAMS:
        for start in range(len(data) - n + 1):
            h = 2166136261
            for byte in data[start:start + n]:
                h = ((h ^ byte) * 16777619) & 0xFFFFFFFF
            ids.append(h % BUCKETS)
    return np.array(ids, dtype=np.int64)


def hash_array(text):
    data = np.frombuffer(text.encode(), dtype=np.uint8).astype(np.uint32)
    ids = []
    for n in NGRAMS:
        count = len(data) - n + 1
        h = np.full(count, 2166136261, dtype=np.uint32)
        for k in range(n):
            h = (h ^ data[k:k + count]) * np.uint32(16777619)
        ids.append(h % BUCKETS)
    return np.concatenate(ids).astype(np.int64)


class Comments(Dataset):
    def __init__(self, path, hasher):
        with gzip.open(path, "rt") as f:
            self.rows = [line.rstrip("\n").split("\t") for line in f]
        self.hasher = hasher

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        label, text = self.rows[index]
        return self.hasher(text), int(label)


def to_bag(samples):
    lengths = [len(ids) for ids, _ in samples]
    offsets = np.cumsum([0] + lengths[:-1])
    return (
        torch.from_numpy(np.concatenate([ids for ids, _ in samples])),
        torch.from_numpy(offsets),
        torch.tensor([label for _, label in samples]),
    )


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(BUCKETS, 16, mode="mean")
        self.head = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 4))

    def forward(self, ids, offsets):
        return self.head(self.bag(ids, offsets))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--hasher", choices=["loop", "array"], default="loop")
    ap.add_argument("--epochs", type=int, default=2)
    args = ap.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "comments.tsv.gz")
        write_corpus(path)
        dataset = Comments(path, hash_loop if args.hasher == "loop" else hash_array)
        loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=2, collate_fn=to_bag, persistent_workers=True)
        model = Classifier()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        criterion = nn.CrossEntropyLoss()
        for epoch in range(args.epochs):
            right = 0
            for ids, offsets, labels in loader:
                logits = model(ids, offsets)
                loss = criterion(logits, labels)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                right += int((logits.argmax(1) == labels).sum())
            print(f"epoch {epoch} accuracy {right / len(dataset):.3f}")


if __name__ == "__main__":
    main()
