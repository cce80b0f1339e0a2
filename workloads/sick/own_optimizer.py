# truth: optimizer_bound
# about: an optimizer of one's own updates a thousand small parameters one after the other, with a dozen operators each
# also: batch_too_small
# cure: --foreach
# needs: torch
import argparse

import torch


class OneByOne(torch.optim.Optimizer):
    """Adam as the paper writes it."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["t"] = 0
                    state["m"], state["v"] = torch.zeros_like(p), torch.zeros_like(p)
                state["t"] += 1
                state["m"] = 0.9 * state["m"] + 0.1 * p.grad
                state["v"] = 0.999 * state["v"] + 0.001 * p.grad * p.grad
                m = state["m"] / (1 - 0.9 ** state["t"])
                v = state["v"] / (1 - 0.999 ** state["t"])
                p -= group["lr"] * m / (v.sqrt() + 1e-8)


class Deep(torch.nn.Module):
    """Residual, so that gradients do not become denormal numbers on their way."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(200))

    def forward(self, x):
        for layer in self.layers:
            x = x + 0.05 * layer(x)
        return x


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--foreach", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Deep()
    if args.foreach:
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, foreach=True)
    else:
        optimizer = OneByOne(model.parameters(), lr=1e-4)
    x = torch.randn(256, 32)
    for _ in range(250):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
