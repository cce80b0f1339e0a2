# Truth (tests/system/test_training_scripts.py reads it; needs torch 2 and a compiler):
#   needs compile
#   steps 30                      3 epochs of 10 batches
#   optimizer_steps 30
#   epochs 3
#   samples 960
#   phases data_loading forward backward optimizer
#   absent evaluation checkpoint
"""torch.compile(fullgraph=True): one graph, compiled once; the last line counts them."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Model(nn.Module):
    def __init__(self, d=128, layers=3):
        super().__init__()
        self.blocks = nn.ModuleList(Block(d) for _ in range(layers))
        self.head = nn.Linear(d, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x).squeeze(-1)


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    data = TensorDataset(torch.randn(320, 128), torch.randn(320))
    loader = DataLoader(data, batch_size=32, pin_memory=device == "cuda")
    graphs = 0

    def counting(graph, inputs):
        nonlocal graphs
        graphs += 1
        from torch._inductor.compile_fx import compile_fx

        return compile_fx(graph, inputs)

    model = torch.compile(Model().to(device), fullgraph=True, backend=counting)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.6f}")
    print("graphs compiled:", graphs)


if __name__ == "__main__":
    main()
