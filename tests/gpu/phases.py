"""A program on a GPU that knows its own truth; tests/gpu/check.py compares.

Phases are measured by the program's own CUDA events, made and read here, and by its clock.
"""

import json
import sys
import time

import torch
from torch import nn

torch.manual_seed(0)
spent, pairs, lines = {}, [], {}


def line():
    return sys._getframe(1).f_lineno


class timed:
    def __init__(self, phase):
        self.phase = phase
        self.pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def __enter__(self):
        self.pair[0].record()

    def __exit__(self, *_):
        self.pair[1].record()
        pairs.append((self.phase, *self.pair))


class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.body = nn.Sequential(*[nn.Linear(n, n, bias=False) for _ in range(6)])

    def forward(self, x):
        return self.body(x)


n = 4096
net = Net(n).cuda()
opt = torch.optim.Adam(net.parameters(), lr=1e-5, foreach=True)
host = torch.randn(n, n).pin_memory()

# Nothing waits: the host is far ahead of the device after this loop.
x = torch.randn(n, n, device="cuda")
net(x).sum().backward(), opt.step(), opt.zero_grad()
torch.cuda.synchronize()
start = time.perf_counter()
for i in range(30):
    with timed("forward"):
        out = net(x)
    loss = out.square().mean()
    with timed("backward"):
        loss.backward()
    with timed("gradient"):
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    with timed("optimizer"):
        opt.step()
    opt.zero_grad()
host_s = time.perf_counter() - start
torch.cuda.synchronize()
all_s = time.perf_counter() - start

# Waits, with their lines.
for i in range(10):
    y = net(x).sum()
    y.item(); lines["item"] = line()
    y.detach().cpu(); lines["cpu"] = line()
    y.detach().reshape(1).tolist(); lines["tolist"] = line()
    float(y); lines["__float__"] = line()
    bool(y > 0); lines["__bool__"] = line()
    torch.cuda.synchronize(); lines["synchronize"] = line()
    y.detach().to("cpu"); lines["to"] = line()
    text = str(y.detach()); lines["print"] = line()
    moved = host.to("cuda", non_blocking=True); lines["transfer"] = line()
    same = x.to(torch.float16)

# A graph is captured and replayed as ever.
static = torch.randn(64, n, device="cuda")
side = torch.cuda.Stream()
with torch.cuda.stream(side), torch.no_grad():
    net(static)
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph), torch.no_grad():
    captured = net(static)
static.copy_(torch.ones_like(static))
graph.replay()
torch.cuda.synchronize()
right = torch.allclose(captured, net(torch.ones(64, n, device="cuda")), rtol=1e-3, atol=1e-3)

for phase, a, b in pairs:
    spent[phase] = spent.get(phase, 0) + a.elapsed_time(b) / 1e3
print(json.dumps({"device": spent, "host_s": host_s, "all_s": all_s, "lines": lines,
                  "graph_right": right, "file": __file__}))
