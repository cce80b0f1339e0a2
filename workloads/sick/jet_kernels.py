# truth: allocation_churn
# about: a kernel machine builds its 42 MB kernel matrix out of seven temporaries of that size in every step; each is mapped, faulted in page by page and given back to the system
# cure: --workspace
# needs: torch
"""Tells particle jets apart with a kernel machine: Gaussian kernels around landmarks, a linear layer over them."""
import argparse
import time

import torch

FEATURES, LANDMARKS, BATCH = 12, 8192, 1280


def jets(count, seed):
    gen = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, 2, (count,), generator=gen)
    x = torch.randn(count, FEATURES, generator=gen)
    ring = x.norm(dim=1, keepdim=True)
    return torch.where(kind[:, None] == 1, x * (1.5 / ring + 0.4), x), kind


def kernel(x, landmarks, width):
    square = (x ** 2).sum(1)[:, None] + (landmarks ** 2).sum(1)[None, :]
    distance = square - 2 * (x @ landmarks.t())
    distance = distance.clamp(min=0)
    return torch.exp(-distance / (2 * width ** 2))


class Kernel:
    """The same in one block that is kept."""

    def __init__(self, rows, landmarks, width):
        self.block = torch.empty(rows, len(landmarks))
        self.landmarks, self.width = landmarks.t().contiguous(), width
        self.square = (landmarks ** 2).sum(1)

    def __call__(self, x):
        k = torch.mm(x, self.landmarks, out=self.block)
        k.mul_(-2).add_(self.square).add_((x ** 2).sum(1)[:, None]).clamp_(min=0)
        return k.div_(-2 * self.width ** 2).exp_()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--workspace", action="store_true")
    ap.add_argument("--steps", type=int, default=64)
    a = ap.parse_args()
    torch.manual_seed(9)
    x, kind = jets(40_000, 2)
    landmarks = x[torch.randperm(len(x))[:LANDMARKS]].clone()
    head = torch.nn.Linear(LANDMARKS, 2)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.02, momentum=0.9)
    kept = Kernel(BATCH, landmarks, 1.6) if a.workspace else None
    begin = time.perf_counter()
    for step in range(1, a.steps + 1):
        pick = torch.randint(0, len(x), (BATCH,))
        with torch.no_grad():
            phi = kept(x[pick]) if a.workspace else kernel(x[pick], landmarks, 1.6)
        out = head(phi)
        loss = torch.nn.functional.cross_entropy(out, kind[pick])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 16 == 0:
            print(f"step {step}: loss {loss.item():.4f}, right {(out.argmax(1) == kind[pick]).float().mean().item():.3f}")
    took = time.perf_counter() - begin
    print(f"{a.steps} steps, {took:.2f} s, {1e3 * took / a.steps:.1f} ms a step")


if __name__ == "__main__":
    main()
