# truth: checkpoint_stall
# about: model and optimizer state, some 75 MB, are saved and synced to disk after every fourth step
# gain: run
# cure: --save-every 30
# whatif: checkpoint=7.5
# needs: torch numpy
"""Word-level LSTM language model on a memory-mapped token file."""
import argparse
import os
import tempfile

import numpy as np
import torch
import torch.nn as nn

VOCABULARY = 24000


class WordModel(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.decoder = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens, state=None):
        out, state = self.lstm(self.table(tokens), state)
        return self.decoder(out), state


class Checkpoints:
    """Writes beside the old one, then renames, so that there is always a whole one."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "last.pt")

    def save(self, step, model, optimizer):
        with open(self.path + ".new", "wb") as f:
            torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, f)
            f.flush()
            os.fsync(f.fileno())
        os.replace(self.path + ".new", self.path)


def windows(tokens, rows, length):
    per_row = len(tokens) // rows
    grid = tokens[:rows * per_row].reshape(rows, per_row)
    for start in range(0, per_row - length, length):
        chunk = torch.from_numpy(grid[:, start:start + length + 1].astype(np.int64))
        yield chunk[:, :-1], chunk[:, 1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save-every", type=int, default=4)
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()
    torch.manual_seed(5)
    rows, length = 4, 12
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokens.bin")
        rng = np.random.default_rng(5)
        (rng.zipf(1.3, size=rows * (length * args.steps + 1)) % VOCABULARY).astype(np.uint16).tofile(path)
        tokens = np.memmap(path, dtype=np.uint16, mode="r")
        model = WordModel()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
        checkpoints = Checkpoints(folder)
        state = None
        for step, (x, y) in enumerate(windows(tokens, rows, length), 1):
            logits, state = model(x, state)
            state = tuple(s.detach() for s in state)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            if step % args.save_every == 0:
                checkpoints.save(step, model, optimizer)
            if step % 10 == 0:
                print(f"step {step} perplexity {loss.exp().item():.0f}")


if __name__ == "__main__":
    main()
