# truth: none
# about: a text classifier that trains from memory and is evaluated once, at the end, in large batches without gradients
# needs: torch
"""Sorts court rulings by field of law from a window of their words; tested once on held-out rulings."""
import time

import torch
from torch import nn
from torch.nn import functional as F

WORDS = 3000
WINDOW = 80
FIELDS = 10
BATCH = 64
STEPS = 130


def rulings(count):
    """Half of the words are common to all fields, the other half belong to the field."""
    fields = torch.randint(FIELDS, (count,))
    common = torch.randint(WORDS // 2, (count, WINDOW))
    special = WORDS // 2 + (fields.unsqueeze(1) * 100 + torch.randint(250, (count, WINDOW))) % (WORDS // 2)
    return torch.where(torch.rand(count, WINDOW) < 0.5, common, special), fields


class Reader(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.views = nn.ModuleList(nn.Conv1d(width, width, size, padding=size // 2) for size in (3, 5, 7))
        self.drop = nn.Dropout(0.2)
        self.field = nn.Linear(3 * width, FIELDS)

    def forward(self, text):
        x = self.words(text).transpose(1, 2)
        seen = [F.relu(view(x)).amax(dim=2) for view in self.views]
        return self.field(self.drop(torch.cat(seen, dim=1)))


@torch.inference_mode()
def test(model, text, fields):
    model.eval()
    right = sum((model(some).argmax(1) == truth).sum() for some, truth in zip(text.split(256), fields.split(256)))
    return right.item() / len(fields)


def main():
    torch.manual_seed(55)
    text, fields = rulings(8000)
    held_text, held_fields = rulings(1000)
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    model.train()
    began = time.perf_counter()
    for step in range(1, STEPS + 1):
        rows = torch.randint(len(text), (BATCH,))
        loss = F.cross_entropy(model(text[rows]), fields[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    took = time.perf_counter() - began
    print(f"{STEPS} steps, {1000 * took / STEPS:.2f} ms each, {took:.2f} s")
    began = time.perf_counter()
    print(f"held out: {test(model, held_text, held_fields):.1%} right, in {time.perf_counter() - began:.2f} s")


if __name__ == "__main__":
    main()
