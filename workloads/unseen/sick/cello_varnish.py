# truth: optimizer_bound
# about: a hand-written Shampoo takes the inverse fourth roots of its two preconditioners by an eigendecomposition of every weight matrix at every step, which takes far longer than forward and backward
# cure: --root-every 25
# whatif: optimizer=7
# needs: torch numpy
"""Workshop attribution of old cellos from the infrared spectrum of their varnish (residual MLP, Shampoo)."""
import argparse

import torch
from torch import nn

BANDS, WORKSHOPS, WIDTH = 192, 14, 160


class Shampoo(torch.optim.Optimizer):
    """Gupta, Koren, Singer 2018, for matrices; vectors get plain momentum."""

    def __init__(self, params, lr=0.05, momentum=0.9, eps=1e-4, root_every=1):
        super().__init__(params, dict(lr=lr, momentum=momentum, eps=eps, root_every=root_every))

    @staticmethod
    def _inverse_root(m, power):
        n = m.shape[0]
        ridge = 1e-3 * m.diagonal().mean()
        w, v = torch.linalg.eigh(m + ridge * torch.eye(n))
        return (v * torch.maximum(w, ridge).pow(-1.0 / power)) @ v.T

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, st = p.grad, self.state[p]
                if not st:
                    st["t"] = 0
                    st["buf"] = torch.zeros_like(p)
                    if p.dim() == 2:
                        st["L"] = group["eps"] * torch.eye(p.shape[0])
                        st["R"] = group["eps"] * torch.eye(p.shape[1])
                if p.dim() == 2:
                    st["L"].addmm_(g, g.T)
                    st["R"].addmm_(g.T, g)
                    if st["t"] % group["root_every"] == 0:
                        st["Li"] = self._inverse_root(st["L"], 4)
                        st["Ri"] = self._inverse_root(st["R"], 4)
                    g = st["Li"] @ g @ st["Ri"]
                st["t"] += 1
                st["buf"].mul_(group["momentum"]).add_(g)
                p.add_(st["buf"], alpha=-group["lr"])


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.mix(self.norm(x)))


class VarnishNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(BANDS, WIDTH)
        self.blocks = nn.Sequential(*[Residual(WIDTH) for _ in range(6)])
        self.leave = nn.Linear(WIDTH, WORKSHOPS)

    def forward(self, spectrum):
        return self.leave(self.blocks(self.enter(spectrum)))


def infrared(n, gen):
    """Absorption bands of resins and oils, mixed in each workshop's own proportion."""
    wave = torch.linspace(0, 1, BANDS)
    resins = torch.exp(-((wave - torch.rand(12, 1, generator=gen)) / 0.03) ** 2)
    recipe = torch.rand(WORKSHOPS, 12, generator=gen)
    who = torch.randint(0, WORKSHOPS, (n,), generator=gen)
    mix = recipe[who] * (0.7 + 0.6 * torch.rand(n, 12, generator=gen))
    return mix @ resins + 0.4 * torch.randn(n, BANDS, generator=gen), who


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--root-every", type=int, default=1, help="steps between two inverse roots")
    ap.add_argument("--steps", type=int, default=125)
    ap.add_argument("--batch", type=int, default=1024)
    opts = ap.parse_args()
    gen = torch.Generator().manual_seed(1710)
    torch.manual_seed(1710)
    spectra, workshop = infrared(12000, gen)
    net = VarnishNet()
    shampoo = Shampoo(net.parameters(), lr=0.004, root_every=opts.root_every)
    for step in range(opts.steps):
        pick = torch.randint(0, len(spectra), (opts.batch,), generator=gen)
        loss = nn.functional.cross_entropy(net(spectra[pick]), workshop[pick])
        net.zero_grad(set_to_none=True)
        loss.backward()
        shampoo.step()
        if step % 25 == 24:
            print(f"step {step + 1}: {loss.item():.3f}")
