"""The reference nets once more, in torch: what test_ref_nets.py and `make bench` compare
with. Parameters carry the names that the C nets give theirs."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width, heads, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):  # groups × n × width
        groups, n, width = x.shape
        q, k, v = (
            part.view(groups, n, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        if self.causal:
            mask = torch.ones(n, n, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(mask, float("-inf"))
        y = scores.softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(groups, n, width))


class GIN(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, x, source, target):
        return super().forward(x + torch.zeros_like(x).index_add(0, target, x[source]))


class GCN(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lin = nn.Linear(width, width)

    def forward(self, x, source, target):
        degree = x.new_ones(len(x)).index_add(0, target, x.new_ones(len(target)))
        scale = degree.rsqrt()
        messages = x[source] * (scale[source] * scale[target]).unsqueeze(1)
        own = x * (scale * scale).unsqueeze(1)
        return self.lin(own.index_add(0, target, messages))


class SAGE(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lin_l, self.lin_r = nn.Linear(width, width), nn.Linear(width, width, bias=False)

    def forward(self, x, source, target):
        count = x.new_zeros(len(x)).index_add(0, target, x.new_ones(len(target)))
        total = torch.zeros_like(x).index_add(0, target, x[source])
        return self.lin_l(total / count.clamp(min=1).unsqueeze(1)) + self.lin_r(x)


class GINE(GIN):
    def forward(self, x, source, target, edges):
        messages = (x[source] + edges).relu()
        return nn.Sequential.forward(self, x.index_add(0, target, messages))


class GatedGCN(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.A, self.B, self.C, self.U, self.V = (nn.Linear(width, width) for _ in range(5))

    def forward(self, x, source, target, edges):
        gate = torch.sigmoid(self.A(x)[target] + self.B(x)[source] + self.C(edges))
        above = torch.zeros_like(x).index_add(0, target, gate * self.V(x)[source])
        below = torch.zeros_like(x).index_add(0, target, gate)
        return self.U(x) + above / (below + 1e-6)


class GAT(nn.Module):
    """As PyTorch Geometric's GATConv: with self loops, leaky ReLU of slope 0.2."""

    def __init__(self, width, heads):
        super().__init__()
        self.lin = nn.Linear(width, width, bias=False)
        self.att_src = nn.Parameter(torch.zeros(heads, width // heads))
        self.att_dst = nn.Parameter(torch.zeros(heads, width // heads))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x, source, target):
        own = torch.arange(len(x))
        source, target = torch.cat([source, own]), torch.cat([target, own])
        h = self.lin(x).view(len(x), *self.att_src.shape)
        scores = (h * self.att_src).sum(-1)[source] + (h * self.att_dst).sum(-1)[target]
        weights = F.leaky_relu(scores, 0.2).exp()
        total = weights.new_zeros(len(x), weights.shape[1]).index_add(0, target, weights)
        alpha = weights / total[target]
        y = torch.zeros_like(h).index_add(0, target, alpha.unsqueeze(-1) * h[source])
        return y.reshape(x.shape) + self.bias


class PNA(nn.Module):
    """As PyTorch Geometric's PNAConv with one tower: mean, max, min, std; identity,
    amplification, attenuation."""

    def __init__(self, width):
        super().__init__()
        self.pre = nn.Linear(2 * width, width)
        self.post = nn.Linear(13 * width, width)
        self.lin = nn.Linear(width, width)

    def forward(self, x, source, target):
        m = self.pre(torch.cat([x[target], x[source]], 1))
        degree = x.new_zeros(len(x)).index_add(0, target, x.new_ones(len(target))).clamp(min=1)
        index = target.unsqueeze(1).expand_as(m)
        zero = torch.zeros_like(x)
        mean = zero.index_add(0, target, m) / degree.unsqueeze(1)
        squares = zero.index_add(0, target, m * m) / degree.unsqueeze(1)
        most = zero.scatter_reduce(0, index, m, "amax", include_self=False)
        least = zero.scatter_reduce(0, index, m, "amin", include_self=False)
        std = ((squares - mean * mean).relu() + 1e-5).sqrt()
        four = torch.cat([mean, most, least, std], 1)
        log = (degree + 1).log()
        scale = (log / log.mean()).unsqueeze(1)
        return self.lin(self.post(torch.cat([x, four, four * scale, four / scale], 1)))


class Block(nn.Module):
    def __init__(self, width, heads, ffn, message):
        super().__init__()
        kinds = {"gin": GIN, "gcn": GCN, "sage": SAGE, "gine": GINE, "gatedgcn": GatedGCN,
                 "gat": GAT, "pna": PNA}  # fmt: skip
        if message in kinds:
            self.mpnn = kinds[message](*((width, heads) if message == "gat" else (width,)))
            self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.ffn = nn.Sequential(nn.Linear(width, ffn), nn.GELU(), nn.Linear(ffn, width))
        self.norm3 = nn.LayerNorm(width)

    def forward(self, x, edges, graphs):
        grouped = x.view(graphs, -1, x.shape[1])
        h = self.norm2(x + self.attention(grouped).reshape(x.shape))
        if hasattr(self, "mpnn"):
            h = h + self.norm1(x + self.mpnn(x, *edges))
        return self.norm3(h + self.ffn(h))


class GraphTransformer(nn.Module):
    def __init__(self, features=16, hidden=256, layers=6, heads=8, ffn=None, outputs=10,
                 message="gin"):
        super().__init__()
        self.encoder = nn.Linear(features, hidden)
        if message in ("gine", "gatedgcn"):
            self.edge_encoder = nn.Linear(3, hidden)
        self.layers = nn.ModuleList(
            Block(hidden, heads, ffn or 2 * hidden, message) for _ in range(layers)
        )
        self.head = nn.Linear(hidden, outputs)

    def forward(self, x, source, target, graphs):
        edges = (source, target)
        if hasattr(self, "edge_encoder"):
            degree = x.new_ones(len(x)).index_add(0, target, x.new_ones(len(target)))
            scale = degree.rsqrt()
            features = torch.stack([torch.ones_like(scale[source]), scale[source], scale[target]], 1)
            edges = (source, target, self.edge_encoder(features))
        x = self.encoder(x)
        for layer in self.layers:
            x = layer(x, edges, graphs)
        return self.head(x.view(graphs, -1, x.shape[1]).mean(1))

    @staticmethod
    def loss(logits, labels):
        return F.binary_cross_entropy_with_logits(logits, labels)


class GELUTanh(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


class GPTBlock(nn.Module):
    def __init__(self, width, heads, ffn):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal=True)
        self.ffn = nn.Sequential(nn.Linear(width, ffn), GELUTanh(), nn.Linear(ffn, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.ffn(self.norm2(x))


class GPT2(nn.Module):
    def __init__(self, vocab=256, tokens=128, hidden=256, layers=6, heads=8, ffn=None):
        super().__init__()
        self.tokens = nn.Embedding(vocab, hidden)
        self.positions = nn.Embedding(tokens, hidden)
        self.layers = nn.ModuleList(
            GPTBlock(hidden, heads, ffn or 4 * hidden) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(hidden)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) @ self.tokens.weight.T

    @staticmethod
    def loss(logits, following):
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), following.reshape(-1))


class MLP(nn.Module):
    def __init__(self, features=784, hidden=256, layers=3, outputs=10):
        super().__init__()
        sizes = [features] + [hidden] * (layers - 1) + [outputs]
        self.layers = nn.ModuleList(map(nn.Linear, sizes[:-1], sizes[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = layer(x).relu()
        return self.layers[-1](x)

    loss = staticmethod(F.cross_entropy)
