# truth: data_loading_bound
# about: every field parcel is asked from an object store that answers after 5 ms (a sleep in the store's own process stands for the network), and the loader without workers asks for one after the other
# also: io_wait
# advice: num_workers
# cure: --workers 6
# whatif: workers=6
# needs: torch numpy
"""Crop types from satellite time series. The parcels live in a bucket; here the bucket is a
small server on the loopback address with the latency of the real one."""
import argparse
import multiprocessing
import os
import shutil
import socket
import socketserver
import struct
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BANDS, SIDE, CROPS = 9, 20, 7
LATENCY = 0.005


class Bucket(socketserver.BaseRequestHandler):
    """GET by key: four bytes of key, answered by the length and the object."""

    def handle(self):
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            key = self.request.recv(4, socket.MSG_WAITALL)
            if len(key) < 4:
                return
            time.sleep(LATENCY)
            path = os.path.join(self.server.folder, "%06d" % struct.unpack("<I", key))
            with open(path, "rb") as file:
                body = file.read()
            self.request.sendall(struct.pack("<I", len(body)) + body)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


def serve(folder, pipe):
    with Server(("127.0.0.1", 0), Bucket) as server:
        server.folder = folder
        pipe.send(server.server_address)
        server.serve_forever()


def fill(folder, count):
    rng = np.random.default_rng(11)
    season = rng.normal(size=(CROPS, BANDS, 1, 1)).astype(np.float32)
    for i in range(count):
        crop = i % CROPS
        cube = season[crop] + rng.normal(size=(BANDS, SIDE, SIDE)).astype(np.float32)
        with open(os.path.join(folder, "%06d" % i), "wb") as file:
            file.write(struct.pack("<I", crop) + cube.astype(np.float16).tobytes())


class Parcels(Dataset):
    def __init__(self, address, count):
        self.address, self.count = address, count
        self.link = None
        self.owner = None

    def __len__(self):
        return self.count

    def connection(self):
        if self.owner != os.getpid():
            self.link = socket.create_connection(self.address)
            self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.owner = os.getpid()
        return self.link

    def __getitem__(self, index):
        link = self.connection()
        link.sendall(struct.pack("<I", index))
        size, = struct.unpack("<I", link.recv(4, socket.MSG_WAITALL))
        body = link.recv(size, socket.MSG_WAITALL)
        crop, = struct.unpack_from("<I", body)
        cube = np.frombuffer(body, np.float16, offset=4).astype(np.float32)
        return torch.from_numpy(cube.reshape(BANDS, SIDE, SIDE)), crop


def train(args, address, count):
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Conv2d(BANDS, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(24, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(192, CROPS))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, nesterov=True)
    loader = DataLoader(Parcels(address, count), batch_size=20, shuffle=True,
                        num_workers=args.workers, persistent_workers=args.workers > 0)
    start, steps = time.perf_counter(), 0
    for epoch in range(2):
        total = 0.0
        for cubes, crops in loader:
            loss = nn.functional.cross_entropy(model(cubes), crops)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        print("epoch %d loss %.3f" % (epoch, total / len(loader)))
    spent = time.perf_counter() - start
    print("%d steps, %.1f ms per step" % (steps, 1e3 * spent / steps))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    count = 760
    folder = tempfile.mkdtemp(prefix="parcels-")
    here, there = multiprocessing.Pipe()
    store = multiprocessing.Process(target=serve, args=(folder, there), daemon=True)
    try:
        store.start()
        address = here.recv()
        fill(folder, count)
        train(args, address, count)
    finally:
        store.terminate()
        store.join()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
