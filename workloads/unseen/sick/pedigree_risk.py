# truth: gc_pauses
# about: the register of a breeding society lives as hundreds of thousands of linked Python objects, and the loop calls gc.collect() after every step, so each step walks through all of them again
# cure: --tidy-every 40
# whatif: gc=40
# needs: torch numpy
"""Risk of an inherited heart condition in dogs, from the pedigree.

The register is read into linked animals. A sample is an animal's ancestors of five generations,
summed by generation; the model is a GRU over the generations. A walk through the
pedigree leaves little family trees with links up and down, which only the collector can
remove, hence the tidying in the loop.
"""
import argparse
import gc
import random
import time

import torch
from torch import nn

ANIMALS, GENERATIONS, TRAITS = 70_000, 5, 6


class Animal:
    __slots__ = ("number", "sire", "dam", "pups", "traits", "ill")

    def __init__(self, number, sire, dam, traits, ill):
        self.number, self.sire, self.dam = number, sire, dam
        self.traits, self.ill = traits, ill
        self.pups = []
        for parent in (sire, dam):
            if parent is not None:
                parent.pups.append(self)


class Branch:
    """A place in the ancestral tree of one animal."""

    def __init__(self, animal, below, depth):
        self.animal, self.below, self.depth = animal, below, depth
        self.above = []
        if depth + 1 < GENERATIONS:
            for parent in (animal.sire, animal.dam):
                if parent is not None:
                    self.above.append(Branch(parent, self, depth + 1))


def read_register(seed):
    rng = random.Random(seed)
    register = []
    for number in range(ANIMALS):
        if number < 500:
            sire = dam = None
            traits = [rng.gauss(0, 1) for _ in range(TRAITS)]
        else:
            sire = register[max(0, number - rng.randrange(1, 4000))]
            dam = register[max(0, number - rng.randrange(1, 4000))]
            noise = rng.random() - 0.5
            traits = [0.5 * (a + b) + noise for a, b in zip(sire.traits, dam.traits)]
        register.append(Animal(number, sire, dam, traits, float(traits[0] + traits[3] > 0.3)))
    return register


def ancestors(animal):
    sums = [[0.0] * (TRAITS + 1) for _ in range(GENERATIONS)]
    stack = [Branch(animal, None, 0)]
    while stack:
        branch = stack.pop()
        row = sums[branch.depth]
        if branch.depth:                                # not the animal's own traits
            for i, value in enumerate(branch.animal.traits):
                row[i] += value
        row[TRAITS] += 1.0
        stack.extend(branch.above)
    return sums


class Risk(nn.Module):
    def __init__(self):
        super().__init__()
        self.walk = nn.GRU(TRAITS + 1, 48, batch_first=True)
        self.out = nn.Linear(48, 1)

    def forward(self, x):
        return self.out(self.walk(x)[0][:, -1]).squeeze(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--tidy-every", type=int, default=1, help="steps between collections")
    args = p.parse_args()
    torch.manual_seed(2)
    gc.disable()
    register = read_register(2)
    gc.enable()
    rng = random.Random(3)
    model = Risk()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    began = time.perf_counter()
    for step in range(args.steps):
        batch = [register[rng.randrange(5000, ANIMALS)] for _ in range(64)]
        x = torch.tensor([ancestors(a) for a in batch])
        y = torch.tensor([a.ill for a in batch])
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % args.tidy_every == 0:
            gc.collect()
        if step % 25 == 24:
            print(f"step {step + 1} loss {loss.item():.3f}")
    took = time.perf_counter() - began
    print(f"{args.steps} steps, {1000 * took / args.steps:.1f} ms a step")


if __name__ == "__main__":
    main()
