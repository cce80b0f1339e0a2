#!/usr/bin/env python3
# truth: allocation_churn
# about: the teacher's weights are averaged out of place after every step: each average makes three fresh blocks as large as the
# about: embedding table (46 MB) and gives them back, so the kernel hands out and clears the same pages again and again
# also: optimizer_bound
# cure: --inplace
# needs: torch numpy
"""Mean teacher for forum moderation: few posts are labelled, the teacher smooths the rest."""
import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F

BUCKETS, WIDTH, TOKENS = 360_000, 32, 50


def posts(count):
    """Posts as hashed n-grams; rude ones lean to some buckets."""
    rng = np.random.default_rng(53)
    rude = rng.random(count) < 0.3
    grams = rng.integers(0, BUCKETS, (count, TOKENS))
    marked = (rng.random((count, TOKENS)) < 0.15) & rude[:, None]
    grams[marked] = rng.integers(0, 500, int(marked.sum()))
    return torch.from_numpy(grams), torch.from_numpy(rude.astype(np.float32))


def fresh_weights():
    return {
        "grams": torch.randn(BUCKETS, WIDTH) * 0.05,
        "hidden.w": torch.randn(96, WIDTH) * WIDTH ** -0.5,
        "hidden.b": torch.zeros(96),
        "out.w": torch.randn(1, 96) * 96 ** -0.5,
        "out.b": torch.zeros(1),
    }


def score(weights, grams, drop=0.0):
    x = F.embedding_bag(grams, weights["grams"], mode="mean", sparse=True)
    x = F.dropout(x * 8, drop, training=drop > 0)
    x = torch.relu(F.linear(x, weights["hidden.w"], weights["hidden.b"]))
    return F.linear(x, weights["out.w"], weights["out.b"]).squeeze(1)


class Teacher:
    def __init__(self, student, decay, inplace):
        self.weights = {name: w.detach().clone() for name, w in student.items()}
        self.decay = decay
        self.inplace = inplace

    @torch.no_grad()
    def follow(self, student):
        if self.inplace:
            for name, w in student.items():
                self.weights[name].lerp_(w, 1 - self.decay)
        else:
            self.weights = {name: self.decay * self.weights[name] + (1 - self.decay) * w for name, w in student.items()}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=80)
    ap.add_argument("--inplace", action="store_true")
    args = ap.parse_args()
    torch.manual_seed(3)
    grams, rude = posts(8000)
    student = {name: w.requires_grad_() for name, w in fresh_weights().items()}
    teacher = Teacher(student, 0.98, args.inplace)
    opt = torch.optim.SGD(student.values(), lr=0.3)
    begin, recent = time.perf_counter(), 0.0
    for step in range(args.steps):
        labelled = torch.randint(0, 2000, (64,))
        free = torch.randint(2000, len(rude), (192,))
        opt.zero_grad(set_to_none=True)
        loss = F.binary_cross_entropy_with_logits(score(student, grams[labelled], 0.1), rude[labelled])
        with torch.no_grad():
            wanted = torch.sigmoid(score(teacher.weights, grams[free]))
        loss = loss + F.mse_loss(torch.sigmoid(score(student, grams[free], 0.1)), wanted)
        loss.backward()
        opt.step()
        teacher.follow(student)
        recent = 0.9 * recent + 0.1 * float(loss.detach())
    took = time.perf_counter() - begin
    print(f"loss {recent:.3f}; {args.steps} steps, {1e3 * took / args.steps:.1f} ms each, {took:.2f} s")


if __name__ == "__main__":
    main()
