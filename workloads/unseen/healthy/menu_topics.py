# truth: none
# about: topics of a table of dishes and words by multiplicative updates; nothing is trained in steps, matrix products in buffers made once are nearly all of it
# needs: torch
"""Topics of restaurant menus: non-negative factors of a table of dishes by words."""
import os
import time

import torch

DISHES, WORDS, TOPICS, ROUNDS = 6000, 4000, 96, 80


def table(generator):
    dishes = torch.rand(DISHES, 24, generator=generator).pow_(8)
    words = torch.rand(24, WORDS, generator=generator).pow_(8)
    return torch.mm(dishes, words)


def factorise(counts, generator):
    """Lee and Seung's rules; every product goes to a buffer that is kept."""
    left = torch.rand(DISHES, TOPICS, generator=generator)
    right = torch.rand(TOPICS, WORDS, generator=generator)
    over_l, under_l = torch.empty_like(left), torch.empty_like(left)
    over_r, under_r = torch.empty_like(right), torch.empty_like(right)
    small = torch.empty(TOPICS, TOPICS)
    for _ in range(ROUNDS):
        torch.mm(left.t(), counts, out=over_r)
        torch.mm(left.t(), left, out=small)
        torch.mm(small, right, out=under_r)
        right.mul_(over_r.div_(under_r.add_(1e-9)))
        torch.mm(counts, right.t(), out=over_l)
        torch.mm(right, right.t(), out=small)
        torch.mm(left, small, out=under_l)
        left.mul_(over_l.div_(under_l.add_(1e-9)))
    return left, right


def main():
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    generator = torch.Generator().manual_seed(6)
    counts = table(generator)
    start = time.perf_counter()
    left, right = factorise(counts, generator)
    spent = time.perf_counter() - start
    rest = torch.mm(left, right).sub_(counts).norm() / counts.norm()
    print("relative error %.3f after %d rounds in %.1f s" % (rest.item(), ROUNDS, spent))


if __name__ == "__main__":
    main()
