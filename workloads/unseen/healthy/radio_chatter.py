# truth: none
# about: a character language model (two-layer LSTM) on random radio chatter kept in memory; nearly all time is in the matrix products of forward and backward
# needs: torch
import torch
from torch import nn

ALPHABET = "abcdefghijklmnopqrstuvwxyz .,"


def chatter(length, seed=8):
    g = torch.Generator().manual_seed(seed)
    words = ["".join(ALPHABET[int(c)] for c in torch.randint(0, 26, (int(n),), generator=g))
             for n in torch.randint(2, 8, (300,), generator=g)]
    text = " ".join(words[int(i)] for i in torch.randint(0, 300, (length // 5,), generator=g))
    return torch.tensor([ALPHABET.index(c) for c in text])


class CharModel(nn.Module):
    def __init__(self, hidden=256):
        super().__init__()
        self.embed = nn.Embedding(len(ALPHABET), 64)
        self.rnn = nn.LSTM(64, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, len(ALPHABET))

    def forward(self, ids, state=None):
        h, state = self.rnn(self.embed(ids), state)
        return self.head(h), state


def main():
    torch.manual_seed(8)
    rows, span = 32, 48
    text = chatter(120_000)
    text = text[: len(text) // rows * rows].view(rows, -1)
    model = CharModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    state = None
    for step in range(48):
        at = step * span
        x, y = text[:, at : at + span], text[:, at + 1 : at + span + 1]
        logits, state = model(x, state)
        state = tuple(s.detach() for s in state)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            print(f"{step:3d} {loss.item():.3f}")


if __name__ == "__main__":
    main()
