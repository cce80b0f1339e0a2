"""A training loop with worker processes, for pages that should have something to show.

    sonde run -- python training.py [STEPS] [WORKERS]

Workers read and prepare samples, the main process trains a tiny regression; every tenth
batch is slow, each epoch ends with an evaluation and a checkpoint.
"""

import math
import multiprocessing
import os
import random
import sys
import tempfile
import time

import sonde

BATCH = 16
EPOCH = 20


def read_sample(path, index):
    with sonde.zone("read", phase="data_loading"):
        with open(path, "rb") as file:
            file.seek(index * 512 % 65536)
            return file.read(512)


def decode(raw):
    with sonde.zone("decode", phase="preprocessing"):
        return [math.sqrt(b) for b in raw]


def augment(sample, rng):
    with sonde.zone("augment", phase="augmentation"):
        return [x * rng.uniform(0.9, 1.1) for x in sample]


def worker(path, tasks, batches):
    rng = random.Random(os.getpid())
    for number in iter(tasks.get, None):
        with sonde.zone("prepare batch", phase="data_loading"):
            samples = [augment(decode(read_sample(path, number * BATCH + i)), rng) for i in range(BATCH)]
            if number % 10 == 7:
                with sonde.zone("retry slow storage", phase="data_loading"):
                    time.sleep(0.03)
            with sonde.zone("collate", phase="collate"):
                batches.put([sum(s) for s in samples])


def step(weights, batch, kept):
    with sonde.zone("forward", phase="forward"):
        errors = []
        for x in batch:
            with sonde.zone("layer"):
                errors.append(sum(math.tanh(w * x) for w in weights))
    with sonde.zone("backward", phase="backward"):
        gradients = [sum(math.cos(w * e) for e in errors) for w in weights]
    with sonde.zone("sgd", phase="optimizer"):
        weights[:] = [w - 1e-3 * g for w, g in zip(weights, gradients)]
    kept.append(bytearray(20_000))  # grows: memory has something to show
    return sum(errors) / len(errors)


def evaluate(weights):
    with sonde.zone("evaluate", phase="evaluation"):
        return sum(math.sin(w * k) for w in weights for k in range(300)) / 300


def checkpoint(weights, path):
    with sonde.zone("save", phase="checkpoint"), open(path, "w") as file:
        file.write("\n".join(map(str, weights)) * 200)


def train(steps, workers, folder):
    path = os.path.join(folder, "samples.bin")
    with open(path, "wb") as file:
        file.write(os.urandom(131072))
    context = multiprocessing.get_context("fork")
    tasks, batches = context.SimpleQueue(), context.SimpleQueue()
    crew = [context.Process(target=worker, args=(path, tasks, batches)) for _ in range(workers)]
    for number in range(steps):
        tasks.put(number)
    for process in crew:
        tasks.put(None)
        process.start()
    with sonde.zone("build model", phase="model_creation"):
        weights, kept = [random.random() for _ in range(48)], []
    for number in range(steps):
        with sonde.zone("wait for batch", phase="data_loading"):
            batch = batches.get()
        sonde.step(samples=BATCH)
        sonde.metric("loss", abs(step(weights, batch, kept)))
        if number % EPOCH == EPOCH - 1:
            sonde.metric("accuracy", abs(evaluate(weights)))
            checkpoint(weights, os.path.join(folder, "checkpoint.txt"))
    for process in crew:
        process.join()


if __name__ == "__main__":
    random.seed(7)
    sonde.param("batch", BATCH)
    with tempfile.TemporaryDirectory() as scratch:
        train(int(sys.argv[1]) if len(sys.argv) > 1 else 200, int(sys.argv[2]) if len(sys.argv) > 2 else 2, scratch)
