# truth: gc_pauses
# about: the pathway atlas is a graph of some hundred thousand Python objects that live as long as the run, and gc.collect() "to keep memory low" walks through all of them after every step
# cure: --tidy-every 40
# whatif: gc=40
# needs: torch numpy
"""Embeddings of genes and pathways: a translation model learns from walks over an annotated atlas."""
import argparse
import gc
import random
import time

import torch
from torch import nn


class Gene:
    def __init__(self, number):
        self.number = number
        self.links = []
        self.notes = {"symbol": "G%05d" % number, "synonyms": ["g%d" % number, "orf%d" % number]}


class Link:
    def __init__(self, source, kind, target):
        self.source, self.kind, self.target = source, kind, target
        self.evidence = [(kind, "PMID:%d" % (source.number * 7 + kind)), {"score": [source.number % 10, kind]}]


class Atlas:
    def __init__(self, genes, links, kinds, seed):
        rng = random.Random(seed)
        self.kinds = kinds
        self.genes = [Gene(i) for i in range(genes)]
        for i in range(links):
            source = self.genes[rng.randrange(genes)]
            kind = rng.randrange(kinds)
            target = self.genes[(source.number * (kind + 3) + rng.randrange(6)) % genes]
            source.links.append(Link(source, kind, target))

    def walk(self, rng, length):
        """Links along a random walk, begun anew at a dead end."""
        here = self.genes[rng.randrange(len(self.genes))]
        for _ in range(length):
            while not here.links:
                here = self.genes[rng.randrange(len(self.genes))]
            link = here.links[rng.randrange(len(here.links))]
            yield link.source.number, link.kind, link.target.number
            here = link.target


class Translation(nn.Module):
    def __init__(self, genes, kinds, width=96):
        super().__init__()
        self.gene = nn.Embedding(genes, width, sparse=True)
        self.kind = nn.Embedding(kinds, width, sparse=True)
        nn.init.normal_(self.gene.weight, 0, 0.3)

    def forward(self, source, kind, target):
        return (self.gene(source) + self.kind(kind) - self.gene(target)).norm(dim=-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--tidy-every", type=int, default=1, help="steps between two tidyings of memory")
    ap.add_argument("--steps", type=int, default=115)
    args = ap.parse_args()
    torch.manual_seed(3)
    rng = random.Random(3)
    atlas = Atlas(9000, 28000, 8, 3)
    model = Translation(len(atlas.genes), atlas.kinds)
    opt = torch.optim.SparseAdam(list(model.parameters()), 1e-2)
    began, mean = time.perf_counter(), 0.0
    for step in range(1, args.steps + 1):
        batch = torch.tensor([link for _ in range(32) for link in atlas.walk(rng, 16)])
        source, kind, target = batch.unbind(1)
        wrong = torch.randint(len(atlas.genes), (len(batch), 8))
        near = model(source, kind, target)
        far = model(source[:, None], kind[:, None], wrong)
        loss = torch.relu(1 + near[:, None] - far).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        mean += (loss.item() - mean) / min(step, 20)
        if step % args.tidy_every == 0:
            gc.collect()
        if step % 40 == 0:
            print("step %d: margin loss %.4f" % (step, mean), flush=True)
    took = time.perf_counter() - began
    print("%d steps, %.1f s, %.2f ms each" % (args.steps, took, 1e3 * took / args.steps))


if __name__ == "__main__":
    main()
