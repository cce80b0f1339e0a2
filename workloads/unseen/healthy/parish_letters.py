# truth: none
# about: a program that answers questions as a person types them; it waits for the person, answers in a few milliseconds and has nothing to hurry for (the person is a shell script that pauses between its lines)
# needs: torch numpy
"""Guesses the decade of old parish letters, line by line as the clerk types them in."""
import argparse
import os
import subprocess
import tempfile
import zlib

import numpy as np
import torch
from torch import nn

DECADES = [1700 + 10 * number for number in range(12)]
LINES = ("received of the widow Carr two shillings", "the bell rope is worn and must be mended",
         "paid for candles and for the singing boys", "a stranger was found in the porch at dawn",
         "the glebe is let to John Marsh for a year", "the great storm has taken the north roof",
         "collected for the fire at Wendham", "the new organ was played at Whitsun",
         "baptised three and buried one this month", "the bishop asks for the terrier again",
         "swept the chimney of the vestry", "bread for the poor on Saint Thomas day")


def clerk(folder, pause):
    """Someone who types a line, reads the answer, thinks, and types the next."""
    script = os.path.join(folder, "clerk.sh")
    with open(script, "w") as out:
        for line in LINES:
            out.write(f"sleep {pause}\necho '{line}'\n")
    return subprocess.Popen(["sh", script], stdout=subprocess.PIPE, text=True)


class Guesser(nn.Module):
    def __init__(self, buckets=4096, width=64):
        super().__init__()
        self.buckets = buckets
        self.words = nn.EmbeddingBag(buckets, width, mode="mean")
        self.decade = nn.Linear(width, len(DECADES))

    def forward(self, line):
        numbers = [zlib.crc32(word.encode()) % self.buckets for word in line.lower().split()]
        return self.decade(self.words(torch.tensor([numbers]))).softmax(1)[0]


def answer(model, line):
    with torch.no_grad():
        chances = model(line)
    best = chances.topk(2)
    return ", ".join(f"{DECADES[place]}s {chance:.0%}" for chance, place in zip(best.values, best.indices))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pause", type=float, default=0.5, help="seconds that the clerk thinks")
    args = parser.parse_args()

    torch.manual_seed(53)
    model = Guesser().eval()
    lengths = []
    with tempfile.TemporaryDirectory(prefix="parish") as folder:
        person = clerk(folder, args.pause)
        for line in person.stdout:
            print(f"{line.strip()}\n    {answer(model, line.strip())}", flush=True)
            lengths.append(len(line.split()))
        person.wait()
    print(f"{len(lengths)} lines of {np.mean(lengths):.1f} words")


if __name__ == "__main__":
    main()
