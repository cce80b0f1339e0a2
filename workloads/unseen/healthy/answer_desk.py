# truth: none
# about: a small local server that answers requests with a trained scorer and waits in select() for the next one most of the time, as its one client asks only now and then
# needs: numpy
import json
import random
import select
import socket
import threading
import time

import numpy as np

SECONDS = 8.0


class Scorer:
    def __init__(self):
        rng = np.random.default_rng(0)
        self.w1 = rng.standard_normal((64, 128)) / 8
        self.w2 = rng.standard_normal((128, 5)) / 11

    def __call__(self, features):
        hidden = np.maximum(np.asarray(features) @ self.w1, 0)
        scores = hidden @ self.w2
        e = np.exp(scores - scores.max())
        return (e / e.sum()).round(4).tolist()


def serve(listener, scorer, until):
    clients, answered = {}, 0
    while time.monotonic() < until:
        ready, _, _ = select.select([listener, *clients], [], [], 0.5)
        for s in ready:
            if s is listener:
                conn, _ = listener.accept()
                clients[conn] = b""
                continue
            got = s.recv(65536)
            if not got:
                s.close()
                del clients[s]
                continue
            *lines, clients[s] = (clients[s] + got).split(b"\n")
            for line in lines:
                request = json.loads(line)
                reply = {"id": request["id"], "scores": scorer(request["features"])}
                s.sendall(json.dumps(reply).encode() + b"\n")
                answered += 1
    for s in clients:
        s.close()
    return answered


def customer(port, until):
    rnd = random.Random(4)
    with socket.create_connection(("127.0.0.1", port)) as conn, conn.makefile("rw") as stream:
        n = 0
        while time.monotonic() < until - 1:
            time.sleep(rnd.expovariate(4))  # people think before they ask
            n += 1
            stream.write(json.dumps({"id": n, "features": [rnd.gauss(0, 1) for _ in range(64)]}) + "\n")
            stream.flush()
            assert json.loads(stream.readline())["id"] == n


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    until = time.monotonic() + SECONDS
    asking = threading.Thread(target=customer, args=(listener.getsockname()[1], until))
    asking.start()
    answered = serve(listener, Scorer(), until)
    asking.join()
    listener.close()
    print(f"answered {answered} requests")


if __name__ == "__main__":
    main()
