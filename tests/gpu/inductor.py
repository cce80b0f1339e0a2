"""torch.compile(fullgraph=True) in training, with the compiler people use."""

import torch
import torch._dynamo as dynamo
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Sequential(nn.Linear(512, 256))).cuda()
net = torch.compile(model, fullgraph=True)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
x, y = torch.randn(128, 256, device="cuda"), torch.randn(128, 256, device="cuda")
for i in range(30):
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    opt.step()
    opt.zero_grad()
c = dynamo.utils.counters
print(dict(c["stats"]), dict(c["graph_break"]), len(c["recompiles"]), f"{loss.item():.9f}")
