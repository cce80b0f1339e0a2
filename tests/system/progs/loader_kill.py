"""Workers count the samples they made in shared memory; in the middle of an epoch the main
process kills them all, says what they had counted, and kills itself."""

import json
import multiprocessing
import os
import signal
import time

import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

WORKERS = 2
made = multiprocessing.Array("q", WORKERS)


class Counting(Dataset):
    def __len__(self):
        return 100000

    def __getitem__(self, i):
        time.sleep(0.001)
        made[get_worker_info().id] += 1
        return torch.tensor(i)


def main():
    loader = DataLoader(Counting(), 4, num_workers=WORKERS)
    iterator = iter(loader)
    for k in range(50):
        next(iterator)
        time.sleep(0.002)
    pids = [w.pid for w in iterator._workers]
    # No handler of torch may notice and end us before we have told.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for worker in iterator._workers:
        while os.path.exists(f"/proc/{worker.pid}/task") and not is_dead(worker.pid):
            time.sleep(0.001)
    print(json.dumps({"made": list(made), "batches": k + 1, "pids": pids}), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def is_dead(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(") ", 1)[1][0] in "ZX"
    except FileNotFoundError:
        return True


if __name__ == "__main__":
    main()
