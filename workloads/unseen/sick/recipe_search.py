#!/usr/bin/env python3
# truth: evaluation_heavy
# about: after every fourth step all recipes are encoded and ranked for all the held-out queries; the ranking takes most of the run
# cure: --every 40
# whatif: evaluation=10
# gain: run
# needs: torch numpy
"""Two towers that find recipes for what people type, judged by MRR, recall and nDCG."""
import argparse
import time

import numpy as np
import torch
from torch import nn

INGREDIENTS, TASTES = 3000, 25


def cookbook(recipes, queries):
    rng = np.random.default_rng(71)
    taste = rng.integers(0, TASTES, recipes)
    lists = (taste[:, None] * 120 + rng.integers(0, 120, (recipes, 24))) % INGREDIENTS
    lists = np.where(rng.random(lists.shape) < 0.3, rng.integers(0, INGREDIENTS, lists.shape), lists)
    target = rng.integers(0, recipes, queries)
    words = np.take_along_axis(lists[target], rng.integers(0, 24, (queries, 5)), axis=1)
    return torch.from_numpy(lists), torch.from_numpy(words), torch.from_numpy(target)


class Tower(nn.Module):
    def __init__(self, vocabulary, hidden):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocabulary, 64)
        self.net = nn.Sequential(nn.Linear(64, hidden), nn.GELU(), nn.Linear(hidden, 64))

    def forward(self, x):
        return nn.functional.normalize(self.net(self.bag(x)), dim=1)


@torch.no_grad()
def judge(query_tower, recipe_tower, words, target, lists):
    """Rank of the right recipe among all, for every held-out query."""
    query_tower.eval(), recipe_tower.eval()
    catalogue = torch.cat([recipe_tower(part) for part in lists.split(1024)])
    ranks, gains = [], []
    for q, t in zip(words.split(128), target.split(128)):
        order = torch.argsort(query_tower(q) @ catalogue.T, dim=1, descending=True)
        rank = (order == t[:, None]).float().argmax(1) + 1
        ranks.append(rank)
        gains.append(torch.where(rank <= 10, 1 / torch.log2(rank + 1.0), torch.zeros(())))
    ranks = torch.cat(ranks).float()
    query_tower.train(), recipe_tower.train()
    return (1 / ranks).mean().item(), (ranks <= 10).float().mean().item(), torch.cat(gains).mean().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=200)
    ap.add_argument("--every", type=int, default=4)
    args = ap.parse_args()
    torch.manual_seed(29)
    lists, words, target = cookbook(4000, 6000)
    held_words, held_target = words[:384], target[:384]
    words, target = words[384:], target[384:]
    queries, recipes = Tower(INGREDIENTS, 256), Tower(INGREDIENTS, 256)
    opt = torch.optim.Adagrad([*queries.parameters(), *recipes.parameters()], lr=0.02)
    own, best, begin = 0.0, 0.0, time.perf_counter()
    for step in range(1, args.steps + 1):
        part = torch.randint(0, len(target), (256,))
        opt.zero_grad()
        scores = 20 * queries(words[part]) @ recipes(lists[target[part]]).T
        loss = nn.functional.cross_entropy(scores, torch.arange(len(part)))
        loss.backward()
        opt.step()
        if step % args.every == 0:
            t = time.perf_counter()
            mrr, recall, ndcg = judge(queries, recipes, held_words, held_target, lists)
            best = max(best, ndcg)
            own += time.perf_counter() - t
    took = time.perf_counter() - begin
    print(f"mrr {mrr:.3f} recall {recall:.3f} best ndcg {best:.3f}; judging {own:.2f} s; "
          f"{args.steps} steps, {1e3 * took / args.steps:.1f} ms each, {took:.2f} s")


if __name__ == "__main__":
    main()
