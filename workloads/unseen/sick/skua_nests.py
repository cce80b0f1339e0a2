# truth: checkpoint_stall
# about: the whole state (weights and both moments) is compressed into a new .npz file after every update, which takes several times as long as the update; nobody needs more than a file now and then
# also: io_wait
# cure: --keep-every 30
# whatif: checkpoint=30
# needs: numpy
"""Where do skuas nest? Occupancy of shore squares from terrain layers, by hand in numpy."""
import argparse
import os
import tempfile
import time

import numpy as np

rng = np.random.default_rng(1907)


def squares(count, layers=64):
    terrain = rng.normal(size=(count, layers)).astype(np.float32)
    slope, wet, far = terrain[:, 0], terrain[:, 1:9].mean(1), np.abs(terrain[:, 9])
    nests = (np.tanh(slope) - 2 * wet + 0.6 * far + 0.3 * rng.normal(size=count) > 0.4).astype(np.float32)
    return terrain, nests


def init(sizes):
    state = {}
    for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:])):
        state["W%d" % i] = (rng.normal(size=(a, b)) * np.sqrt(2 / a)).astype(np.float32)
        state["b%d" % i] = np.zeros(b, np.float32)
    for name in list(state):
        state["m_" + name] = np.zeros_like(state[name])
        state["v_" + name] = np.zeros_like(state[name])
    return state


def forward(state, x, depth):
    acts = [x]
    for i in range(depth):
        z = acts[-1] @ state["W%d" % i] + state["b%d" % i]
        acts.append(np.maximum(z, 0) if i < depth - 1 else z)
    return acts


def gradients(state, x, y, depth):
    acts = forward(state, x, depth)
    p = 1 / (1 + np.exp(-acts[-1][:, 0]))
    loss = -np.mean(y * np.log(p + 1e-7) + (1 - y) * np.log(1 - p + 1e-7))
    d = ((p - y) / len(y))[:, None].astype(np.float32)
    grads = {}
    for i in reversed(range(depth)):
        grads["W%d" % i] = acts[i].T @ d
        grads["b%d" % i] = d.sum(0)
        if i:
            d = (d @ state["W%d" % i].T) * (acts[i] > 0)
    return loss, grads


def update(state, grads, t, lr=1e-3):
    for name, g in grads.items():
        m, v = state["m_" + name], state["v_" + name]
        m += 0.1 * (g - m)
        v += 0.001 * (g * g - v)
        state[name] -= lr * (m / (1 - 0.9 ** t)) / (np.sqrt(v / (1 - 0.999 ** t)) + 1e-8)


def keep(state, folder, t):
    path = os.path.join(folder, "skua_%05d.npz" % t)
    np.savez_compressed(path, t=t, **state)
    old = sorted(os.listdir(folder))[:-3]
    for name in old:
        os.remove(os.path.join(folder, name))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=90)
    ap.add_argument("--keep-every", type=int, default=1)
    args = ap.parse_args()
    sizes = [64, 320, 320, 1]
    depth = len(sizes) - 1
    terrain, nests = squares(20000)
    state = init(sizes)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="skua") as folder:
        for t in range(1, args.steps + 1):
            pick = rng.integers(0, len(terrain), 2048)
            loss, grads = gradients(state, terrain[pick], nests[pick], depth)
            update(state, grads, t)
            if t % args.keep_every == 0:
                keep(state, folder, t)
            if t % 30 == 0:
                print("update %d: loss %.4f" % (t, loss))
    print("%.2f s, cpu %.2f" % (time.perf_counter() - began, time.process_time()))
