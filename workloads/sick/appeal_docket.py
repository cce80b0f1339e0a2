#!/usr/bin/env python3
# truth: data_loading_bound
# about: every judgment is asked for from the court's remote archive (the sleep in the client stands for its latency) one after the other, because the loader has no workers; the cores idle meanwhile
# also: io_wait
# advice: num_workers
# cure: --workers 8
# whatif: workers=8
# needs: torch numpy
"""Will the appeal be allowed? Judgments come from the court's archive, words are hashed, a bag of embeddings decides."""
import argparse
import json
import time
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

COURTS = ("civil", "family", "criminal", "labour")
WORDS = ("costs liberty tenant lease breach damages evidence witness sentence custody wages notice estoppel equity "
         "appellant respondent statute contract injury negligence jurisdiction remedy hearing interest").split()


class ArchiveError(Exception):
    pass


class CourtArchive:
    """Client of the judgments' archive. Documents come as compressed JSON, as the service sends them."""

    def __init__(self, latency=0.005, retries=2):
        self.latency, self.retries = latency, retries
        self.asked = 0

    def _request(self, path):
        time.sleep(self.latency)                # the way to the archive and back
        self.asked += 1
        court, number = path.strip("/").split("/")
        rng = np.random.default_rng(int(number))
        allowed = int(rng.random() < 0.4)
        low, high = (0, 18) if allowed else (6, len(WORDS))
        text = " ".join(WORDS[i] for i in rng.integers(low, high, 120))
        return zlib.compress(json.dumps({"court": court, "text": text, "allowed": allowed}).encode(), 1)

    def judgment(self, court, number):
        for _ in range(self.retries + 1):
            try:
                return json.loads(zlib.decompress(self._request(f"/{court}/{number}")))
            except zlib.error:
                continue
        raise ArchiveError(f"{court}/{number} cannot be had")


class Appeals(Dataset):
    def __init__(self, count, archive):
        self.count, self.archive = count, archive

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        court = number % len(COURTS)
        document = self.archive.judgment(COURTS[court], number)
        words = [zlib.crc32(w.encode()) % 5000 for w in document["text"].split()]
        return torch.tensor(words), court, float(document["allowed"])


class Bench(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.words = nn.EmbeddingBag(5000, width, mode="mean")
        self.courts = nn.Embedding(len(COURTS), width)
        self.verdict = nn.Sequential(nn.Linear(2 * width, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 1))

    def forward(self, words, court):
        return self.verdict(torch.cat([self.words(words), self.courts(court)], 1)).squeeze(1)


class Trainer:
    def __init__(self, model, loader, lr=2e-3):
        self.model, self.loader = model, loader
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.steps = 0

    def step(self, words, court, allowed):
        self.optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(self.model(words, court), allowed.float())
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        return loss.item()

    def run(self, epochs):
        begin = time.perf_counter()
        for epoch in range(epochs):
            losses = [self.step(*batch) for batch in self.loader]
            print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.3f}")
        seconds = time.perf_counter() - begin
        print(f"{self.steps} steps, {1000 * seconds / self.steps:.1f} ms a step")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(8)
    torch.set_num_threads(1)
    loader = DataLoader(Appeals(800, CourtArchive()), batch_size=16, shuffle=True, num_workers=args.workers,
                        persistent_workers=args.workers > 0)
    Trainer(Bench(), loader).run(epochs=2)


if __name__ == "__main__":
    main()
