# truth: slow_samples
# about: every document is tokenised to its end and then cut to 256 tokens; one document in about 130 is a bundle with all its annexes, hundreds of times as long as the others, and while a worker chews on it the other batches wait behind it
# also: data_loading_bound preprocessing_bound
# cure: --cut-text
# needs: torch numpy
"""Sorts public tenders into trades: tokeniser with character-trigram back-off, convolution over words."""
import argparse
import re
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

WORD = re.compile(r"[a-z]+|[0-9]+|[^a-z0-9\s]")
TOKENS = 256
BUCKETS = 20000


def write_tenders(count, bundles):
    rng = np.random.default_rng(21)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = ["".join(rng.choice(letters, n)) for n in rng.integers(3, 11, 4000)]
    words = np.array(words, dtype=object)
    texts, trades = [], []
    for i in range(count):
        trade = int(rng.integers(6))
        length = int(rng.integers(140, 220)) if i % bundles else int(rng.integers(LONG, LONG * 5 // 4))
        own = rng.integers(trade * 600, trade * 600 + 1000, length)
        texts.append(" ".join(words[own]) + ".")
        trades.append(trade)
    return texts, trades


class Tenders(Dataset):
    def __init__(self, texts, trades, known, cut):
        self.texts, self.trades, self.known, self.cut = texts, trades, known, cut

    def tokens(self, text):
        ids = []
        for word in WORD.findall(text):
            number = self.known.get(word)
            if number is None:               # back off to the rarest trigram
                grams = [word[i:i + 3] for i in range(max(1, len(word) - 2))]
                number = len(self.known) + max(sum(ord(c) * 31 ** k for k, c in enumerate(g)) for g in grams) % 9000
            ids.append(number % BUCKETS)
        return ids

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        text = self.texts[i]
        if self.cut:
            text = text[:TOKENS * 12]
        ids = self.tokens(text.lower())[:TOKENS]
        out = torch.zeros(TOKENS, dtype=torch.long)
        out[:len(ids)] = torch.tensor(ids)
        return out, self.trades[i]


class Sorter(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(BUCKETS, 64, sparse=True)
        self.near = nn.Conv1d(64, 64, 5, padding=2)
        self.out = nn.Linear(64, 6)

    def forward(self, ids):
        x = self.words(ids).transpose(1, 2)
        return self.out(torch.relu(self.near(x)).amax(2))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--cut-text", action="store_true")
    ap.add_argument("--count", type=int, default=COUNT)
    args = ap.parse_args()
    torch.manual_seed(4)
    texts, trades = write_tenders(args.count, 131)
    common = {w: n + 1 for n, w in enumerate(sorted(set(" ".join(texts[1:120]).split()))[::2])}
    data = Tenders(texts, trades, common, args.cut_text)
    loader = DataLoader(data, batch_size=16, shuffle=True, num_workers=2, drop_last=True,
                        generator=torch.Generator().manual_seed(9))
    net = Sorter()
    dense = [p for n, p in net.named_parameters() if not n.startswith("words")]
    opts = [torch.optim.SparseAdam(list(net.words.parameters()), lr=2e-3), torch.optim.Adam(dense, lr=2e-3)]
    steps = 0
    begin = time.perf_counter()
    for ids, trade in loader:
        scores = net(ids)
        loss = nn.functional.cross_entropy(scores, trade)
        for opt in opts:
            opt.zero_grad()
        loss.backward()
        for opt in opts:
            opt.step()
        steps += 1
        if steps % 25 == 0:
            print(f"step {steps} loss {loss.item():.3f}")
    spent = time.perf_counter() - begin
    print(f"{steps} steps, {spent:.2f} s, {1000 * spent / steps:.2f} ms a step")


COUNT = 2400
LONG = 150000
if __name__ == "__main__":
    main()
