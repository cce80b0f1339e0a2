import torch, torch.nn as nn, torch.nn.functional as F, sys
import torch._dynamo as dynamo
torch.set_num_threads(1)
torch.manual_seed(0)
device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
graphs = []
def backend(gm, inputs):
    graphs.append([str(n.target) for n in gm.graph.nodes])
    return gm.forward
class Block(nn.Module):
    def __init__(self, n):
        super().__init__(); self.s = nn.Sequential(nn.Linear(n, n), nn.Sequential(nn.ReLU(), nn.Linear(n, n)))
    def forward(self, x): return x + self.s(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.blocks = nn.Sequential(*[Block(8) for _ in range(3)]); self.head = nn.Linear(8, 1)
    def forward(self, x):
        with torch.profiler.record_function("inside"):
            x = self.blocks(x)
        return self.head(x)
def report(what):
    c = dynamo.utils.counters
    print(what, len(graphs), [len(g) for g in graphs], hash(str(graphs)) if False else sum(map(len, graphs)), dict(c["frames"]), dict(c["graph_break"]), dict(c["recompiles"]) if "recompiles" in c else "", dict(c["stats"]))
plain = Net().to(device); plain(torch.ones(2, 8, device=device)).sum().backward()       # classes are known as roots by now
nn.Sequential(nn.Linear(8, 8))(torch.ones(2, 8))
net = torch.compile(Net().to(device), backend=backend, fullgraph=True)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for i in range(4):
    loss = F.mse_loss(net(torch.randn(4, 8, device=device)), torch.zeros(4, 1, device=device)); loss.backward(); opt.step(); opt.zero_grad()
report("model")
inplace = Net().to(device); inplace.compile(backend=backend, fullgraph=True)
for i in range(3): inplace(torch.randn(4, 8, device=device))
report("in place")
m = Net().to(device)
crit = nn.MSELoss()
@torch.compile(backend=backend, fullgraph=True)
def loss_of(x, y): return crit(m(x), y)
for i in range(3): loss_of(torch.randn(4, 8, device=device), torch.zeros(4, 1, device=device)).backward()
report("function")
@torch.compile(backend=backend, fullgraph=True)
def clip(): return torch.nn.utils.clip_grad_norm_(list(m.parameters()), 1.0)
for i in range(3): clip()
report("clip")
o2 = torch.optim.Adam(m.parameters(), capturable=device != "cpu")
step = torch.compile(o2.step, backend=backend)
for i in range(3): step()
report("optimizer")
@torch.compile(backend=backend)
def whole(x):
    y = m(x); y.sum().backward(); return y
for i in range(3): whole(torch.randn(4, 8, device=device))
report("with breaks")
for i in range(3): whole(torch.randn(5 + i, 8, device=device))
report("other shapes")
print(m.head.weight.sum().item(), net(torch.ones(1, 8, device=device)).item())
