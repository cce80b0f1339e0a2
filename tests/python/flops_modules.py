"""Twenty torch modules with their FLOPs worked out by hand (matrix products only: what
torch's own counter counts). Used here and on the machine with a newer torch."""

import torch
from torch import nn
from torch.nn import functional as F


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        return x + self.b(F.gelu(self.a(x)))


class Attention(nn.Module):
    """Scores and context by two products, not fused."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, n, w = x.shape
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        y = ((q @ k.transpose(-2, -1)) / 8**0.5).softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, n, w))


class SumMessages(nn.Module):
    """GIN: gather, scatter, MLP."""

    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))

    def forward(self, x, source, target):
        return self.mlp(x + torch.zeros_like(x).index_add(0, target, x[source]))


class SparseGCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(16, 8, bias=False)

    def forward(self, x, adjacency):
        return torch.sparse.mm(adjacency, self.lin(x))


class TiedHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(100, 24)

    def forward(self, tokens):
        return self.table(tokens) @ self.table.weight.T


def _edges():
    g = torch.Generator().manual_seed(1)
    return torch.randint(50, (200,), generator=g), torch.randint(50, (200,), generator=g)


def _adjacency():
    g = torch.Generator().manual_seed(2)
    places = torch.randperm(50 * 50, generator=g)[:180]
    index = torch.stack([places // 50, places % 50])
    return torch.sparse_coo_tensor(index, torch.ones(180), (50, 50)).coalesce()


def cases():
    """name, module, inputs, MACs of the forward pass, of forward and backward (None: not
    worked out)."""
    torch.manual_seed(0)
    conv = nn.Conv2d
    attention = 4 * 2 * 10 * 32 * 32 + 2 * 2 * 10 * 10 * 32
    lstm = 2 * 7 * 4 * 20 * (12 + 20)
    return [
        ("linear", nn.Linear(784, 512), (torch.randn(32, 784),), 32 * 784 * 512, 2 * 32 * 784 * 512),
        ("linear without bias", nn.Linear(10, 20, bias=False), (torch.randn(4, 10),), 800, 1600),
        ("linear over sequences", nn.Linear(8, 4), (torch.randn(2, 5, 8),), 2 * 5 * 32, 2 * 5 * 64),
        ("mlp", nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10)),
         (torch.randn(32, 784),), 32 * (784 * 512 + 5120), 32 * (2 * 784 * 512 + 3 * 5120)),
        ("bilinear", nn.Bilinear(6, 7, 3), (torch.randn(4, 6), torch.randn(4, 7)), 4 * 3 * 6 * 7, None),
        ("conv1d", nn.Conv1d(4, 8, 3), (torch.randn(2, 4, 20),), 2 * 18 * 8 * 12, None),
        ("conv2d", conv(3, 64, 7, 2, 3, bias=False), (torch.randn(1, 3, 64, 64),),
         32 * 32 * 64 * 147, 2 * 32 * 32 * 64 * 147),
        ("conv2d strided", conv(16, 32, 3, 2, 1), (torch.randn(2, 16, 16, 16),), 2 * 64 * 32 * 144, None),
        ("depthwise", conv(32, 32, 3, groups=32, padding=1), (torch.randn(1, 32, 8, 8),), 64 * 32 * 9, None),
        ("grouped", conv(8, 16, 1, groups=4), (torch.randn(1, 8, 5, 5),), 25 * 16 * 2, None),
        ("transposed conv", nn.ConvTranspose2d(4, 6, 2, 2), (torch.randn(1, 4, 5, 5),), 100 * 6 * 4, None),
        ("conv, norm, relu", nn.Sequential(conv(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()),
         (torch.randn(2, 3, 10, 10),), 2 * 64 * 8 * 27, None),
        ("residual block", Residual(), (torch.randn(6, 32),), 2 * 6 * 32 * 64, 5 * 6 * 32 * 64),
        ("attention", Attention(), (torch.randn(2, 10, 32),), attention, None),
        ("multi-head attention", nn.MultiheadAttention(32, 4, batch_first=True),
         (torch.randn(2, 10, 32),) * 3, attention, None),
        ("encoder layer", nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True),
         (torch.randn(2, 10, 32),), attention + 2 * 2 * 10 * 32 * 64, None),
        ("lstm", nn.LSTM(12, 20, batch_first=True), (torch.randn(2, 7, 12),), lstm, None),
        ("message passing", SumMessages(), (torch.randn(50, 16), *_edges()), 2 * 50 * 256, 5 * 50 * 256),
        ("sparse graph convolution", SparseGCN(), (torch.randn(50, 16), _adjacency()),
         50 * 128 + 180 * 8, None),
        ("tied head", TiedHead(), (torch.randint(100, (2, 9)),), 18 * 24 * 100, 3 * 18 * 24 * 100),
    ]  # fmt: skip
