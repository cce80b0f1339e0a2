# truth: gc_pauses
# about: a guard against running out of memory calls the garbage collector after every update as soon as the process is above its budget, which it always is; each call walks through the hundreds of thousands of lists of the replay memory and frees nothing
# cure: --budget-mb 6000
# needs: torch
"""A player for a text adventure learns from its replay memory (deep Q-learning, soft target)."""
import argparse
import collections
import copy
import gc
import random
import resource
import time

import torch
from torch import nn

WORDS, ACTIONS = 300, 12


def play(rng, turns):
    """Remembered turns: what the player read, did, got and read next, as word numbers."""
    memory = collections.deque(maxlen=turns)
    text = [rng.randrange(WORDS) for _ in range(8)]
    for _ in range(turns):
        action = rng.randrange(ACTIONS)
        after = text[1:] + [(text[0] * 7 + action) % WORDS]
        memory.append({"text": text, "inventory": [action, text[0]], "action": action,
                       "reward": 1.0 if text[0] % ACTIONS == action else 0.0,
                       "after": after, "exits": [text[-1] % 4]})
        text = after if rng.random() < 0.9 else [rng.randrange(WORDS) for _ in range(8)]
    return memory


class MemoryGuard:
    """The last run was killed on the shared server: stay within the budget."""

    def __init__(self, budget_mb):
        self.budget_mb = budget_mb
        self.calls = 0

    def check(self):
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[1])
        if pages * resource.getpagesize() > self.budget_mb * 1e6:
            gc.collect()
            self.calls += 1


class Player(nn.Module):
    def __init__(self, width=384):
        super().__init__()
        self.words = nn.EmbeddingBag(WORDS, width)
        self.inner = nn.Linear(width, width)
        self.value = nn.Linear(width, ACTIONS)

    def forward(self, texts):
        return self.value(torch.relu(self.inner(torch.relu(self.words(texts)))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--budget-mb", type=int, default=64)
    args = parser.parse_args()
    rng = random.Random(13)
    torch.manual_seed(13)
    memory = play(rng, 60000)
    player = Player()
    target = copy.deepcopy(player)
    optimizer = torch.optim.Adam(player.parameters(), lr=1e-3)
    guard = MemoryGuard(args.budget_mb)
    steps, start = 120, time.perf_counter()
    for step in range(1, steps + 1):
        turns = [memory[rng.randrange(len(memory))] for _ in range(192)]
        texts = torch.tensor([turn["text"] for turn in turns])
        after = torch.tensor([turn["after"] for turn in turns])
        actions = torch.tensor([turn["action"] for turn in turns])
        rewards = torch.tensor([turn["reward"] for turn in turns])
        with torch.no_grad():
            wanted = rewards + 0.8 * target(after).amax(1)
        got = player(texts).gather(1, actions[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(got, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(target.parameters(), player.parameters()):
                slow.lerp_(fast, 0.05)
        guard.check()
        if step % 40 == 0:
            print("step %d loss %.4f" % (step, loss.item()))
    spent = time.perf_counter() - start
    print("%d steps, %.1f ms per step, guard acted %d times"
          % (steps, 1e3 * spent / steps, guard.calls))


if __name__ == "__main__":
    main()
