# truth: sync_stall
# about: a second process holds the lock of the shared weights for the whole time that it plays its trial flights, so the learner, which publishes after every update, waits for the end of a flight each time; copying the weights and letting go of the lock would do
# cure: cured/gull_foraging.py
# needs: torch numpy cores:2
"""Gulls that learn where to forage: REINFORCE on a tidal flat, with trial flights of the newest policy beside it."""
import argparse
import multiprocessing as mp
import time

import numpy as np
import torch
from torch import nn

SIDE, MOVES = 24, np.array([[0, 1], [1, 0], [0, -1], [-1, 0], [0, 0]])


class Flat:
    """A flock on a flat whose mussel beds fall dry and drown with the tide."""

    def __init__(self, gulls, seed):
        self.rng = np.random.default_rng(seed)
        self.gulls = gulls
        self.beds = self.rng.random((SIDE, SIDE)).astype(np.float32)

    def reset(self):
        self.hour = 0
        self.where = self.rng.integers(0, SIDE, (self.gulls, 2))
        return self.view()

    def view(self):
        out = np.empty((self.gulls, 52), np.float32)
        padded = np.pad(self.beds, 3, mode="wrap")
        for k, (r, c) in enumerate(self.where):
            out[k, :49] = padded[r:r + 7, c:c + 7].ravel()
        out[:, 49:51] = self.where / SIDE
        out[:, 51] = np.sin(self.hour / 4)
        return out

    def move(self, actions):
        self.where = (self.where + MOVES[actions]) % SIDE
        self.hour += 1
        food = self.beds[self.where[:, 0], self.where[:, 1]] - 0.02 * (actions != 4)
        return self.view(), food.astype(np.float32)


def policy():
    return nn.Sequential(nn.Linear(52, 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh(), nn.Linear(96, 5))


def pour(flat, net):
    torch.nn.utils.vector_to_parameters(torch.from_numpy(flat), net.parameters())


def trials(shared, lock, fresh, stop, scores):
    """Flies the newest policy, greedily, as long as the learner learns."""
    torch.set_num_threads(1)
    net, flat = policy(), Flat(48, seed=5)
    weights = np.frombuffer(shared, np.float32)
    while True:
        fresh.wait()
        fresh.clear()
        if stop.is_set():
            break
        with lock:
            pour(weights.copy(), net)
            view, gained = flat.reset(), np.zeros(flat.gulls, np.float32)
            with torch.no_grad():
                for _ in range(120):
                    view, food = flat.move(net(torch.from_numpy(view)).argmax(1).numpy())
                    gained += food
        ranking = sorted(gained.tolist())
        scores.value = ranking[len(ranking) // 2]


def fly(env, net, hours):
    views, acts, foods = [], [], []
    view = env.reset()
    for _ in range(hours):
        with torch.no_grad():
            act = torch.distributions.Categorical(logits=net(torch.from_numpy(view))).sample().numpy()
        views.append(view)
        acts.append(act)
        view, food = env.move(act)
        foods.append(food)
    back = np.zeros_like(foods[0])
    returns = []
    for food in reversed(foods):
        back = food + 0.95 * back
        returns.append(back)
    returns = np.stack(returns[::-1])
    returns = (returns - returns.mean(1, keepdims=True)) / (returns.std() + 1e-6)
    return torch.from_numpy(np.concatenate(views)), torch.from_numpy(np.concatenate(acts)), torch.from_numpy(returns.reshape(-1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=260)
    args = ap.parse_args()
    torch.manual_seed(5)
    torch.set_num_threads(1)
    net, env = policy(), Flat(32, seed=4)
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    ctx = mp.get_context("fork")
    shared = ctx.RawArray("f", sum(p.numel() for p in net.parameters()))
    weights = np.frombuffer(shared, np.float32)
    lock, fresh, stop, scores = ctx.Lock(), ctx.Event(), ctx.Event(), ctx.Value("f", 0.0)
    weights[:] = torch.nn.utils.parameters_to_vector(net.parameters()).detach().numpy()
    beside = ctx.Process(target=trials, args=(shared, lock, fresh, stop, scores))
    beside.start()
    began = time.perf_counter()
    try:
        for step in range(args.steps):
            views, acts, returns = fly(env, net, 16)
            chance = torch.distributions.Categorical(logits=net(views))
            loss = -(chance.log_prob(acts) * returns).mean() - 0.01 * chance.entropy().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            with lock:
                weights[:] = torch.nn.utils.parameters_to_vector(net.parameters()).detach().numpy()
            fresh.set()
            if step % 20 == 19:
                print("%d: loss %.3f, trial flights bring %.2f" % (step + 1, loss.item(), scores.value))
    finally:
        stop.set()
        fresh.set()
        beside.join()
    print("%.2f s, cpu %.2f" % (time.perf_counter() - began, time.process_time()))


if __name__ == "__main__":
    main()
