# truth: none
# about: the same, games filled up to the longest of their batch, and batches made of games of like length
# needs: torch numpy
"""Who wins? Reads the moves of a game and predicts the result (1-0, draw, 0-1)."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

MOVES = 1968          # every from-to pair a piece can make, promotions included
PAD = 0
LONGEST = 320
BATCH = 16
STEPS = 64


def play_games(n, seed=12):
    """Move lists with a result that leans on which squares were used."""
    rng = np.random.default_rng(seed)
    plies = np.clip(rng.lognormal(3.6, 0.5, n), 8, LONGEST).astype(int)
    plies[rng.integers(0, n, 4)] = LONGEST
    games = []
    for m in plies:
        result = int(rng.integers(0, 3))
        low = 1 + result * 300
        games.append((rng.integers(low, low + 1300, m).astype(np.int64), result))
    return games


class GameBase(Dataset):
    def __init__(self, games):
        self.games = games

    def __len__(self):
        return len(self.games)

    def __getitem__(self, i):
        moves, result = self.games[i]
        return torch.from_numpy(moves), result


def batch_games(items):
    longest = max(len(m) for m, _ in items)
    moves = torch.full((len(items), longest), PAD, dtype=torch.long)
    for row, (m, _) in enumerate(items):
        moves[row, :len(m)] = m
    return moves, torch.tensor([r for _, r in items])


def by_length(games):
    """Batches of games of like length, in random order."""
    order = np.argsort([len(m) for m, _ in games], kind="stable")
    batches = order.reshape(-1, BATCH)
    np.random.default_rng(1).shuffle(batches)
    return batches.tolist()


class ResultReader(nn.Module):
    def __init__(self, width=64, layers=2):
        super().__init__()
        self.move = nn.Embedding(MOVES, width, padding_idx=PAD)
        self.ply = nn.Embedding(LONGEST, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.result = nn.Linear(width, 3)

    def forward(self, moves):
        blank = moves == PAD
        x = self.move(moves) + self.ply.weight[:moves.shape[1]]
        x = self.encoder(x, src_key_padding_mask=blank)
        keep = (~blank).unsqueeze(-1).float()
        return self.result((x * keep).sum(1) / keep.sum(1))


def train():
    torch.manual_seed(0)
    base = GameBase(play_games(BATCH * STEPS))
    loader = DataLoader(base, batch_sampler=by_length(base.games), collate_fn=batch_games)
    reader = ResultReader()
    opt = torch.optim.AdamW(reader.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    right = seen = 0
    for n, (moves, result) in enumerate(loader, 1):
        logits = reader(moves)
        loss = criterion(logits, result)
        opt.zero_grad()
        loss.backward()
        opt.step()
        right += (logits.argmax(1) == result).sum().item()
        seen += len(result)
        if n % 24 == 0:
            print(f"batch {n}: loss {loss.item():.3f}, right {right / seen:.2f}")


if __name__ == "__main__":
    train()
