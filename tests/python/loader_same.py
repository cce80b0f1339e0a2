"""Prints everything a program can see of torch's data loaders: order, random streams,
exceptions with their tracebacks, signatures, what is freed when. With Sonde and without
it the output is the same, byte for byte (test_torch_loader.py)."""

import copy
import gc
import inspect
import pickle
import random
import sys
import threading
import traceback
import weakref

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    get_worker_info,
)
from torch.utils.data.datapipes.iter import IterableWrapper


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def __repr__(self):
        return f"Compose({self.transforms!r})"


class Noise:
    amount = 1.0

    def __call__(self, x):
        return x + torch.rand(1) + random.random() + np.random.rand() * self.amount

    def __repr__(self):
        return "Noise()"


def double(x):
    return x * 2


class Map(Dataset):
    def __init__(self, length=11, bad=None):
        self.length, self.bad = length, bad
        self.transform = Compose([Noise(), double])

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        if i == self.bad:
            raise KeyError(f"no sample {i}")
        first = self.transform.transforms[0]
        assert type(self.transform.transforms) is list and isinstance(first, Noise)
        assert first.amount == 1.0 and repr(first) == "Noise()" and first
        return self.transform(torch.tensor([float(i)])), i


class Stream(IterableDataset):
    def __init__(self, length, bad=None):
        self.length, self.bad = length, bad

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(first, self.length, step):
            if i == self.bad:
                raise RuntimeError(f"stop at {i}")
            yield torch.tensor(i) + random.randint(0, 5)


class WholeBatches(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        return torch.tensor(i)

    def __getitems__(self, indices):
        return [torch.tensor(i) for i in indices]


def seed_worker(number):
    random.seed(100 + number)
    np.random.seed(200 + number)


def bad_collate(samples):
    raise ValueError(f"cannot collate {len(samples)}")


def show(name, make, epochs=1, stop=None):
    print("==", name)
    try:
        loader = make()
        try:
            print("len", len(loader))
        except TypeError as error:
            print("len", error)
        for epoch in range(epochs):
            for k, batch in enumerate(loader):
                print(epoch, k, batch)
                if k == stop:
                    break
    except Exception:
        print(traceback.format_exc())
    print("then", torch.rand(1).item(), random.random(), np.random.rand())


def show_kinds(workers):
    def loader(*args, **kwargs):
        return lambda: DataLoader(*args, num_workers=workers, **kwargs)

    def bad(*args, **kwargs):
        """With one worker at most: of several, one may be early and fail elsewhere."""
        return lambda: DataLoader(*args, num_workers=min(workers, 1), **kwargs)

    generator = torch.Generator().manual_seed(3)
    show("shuffled", loader(Map(), 4, shuffle=True, generator=generator), epochs=2)
    show("no batches", loader(Map(3), batch_size=None))
    sampler = BatchSampler(RandomSampler(range(11)), 3, False)
    show("own batches", loader(Map(), batch_sampler=sampler))
    show("bad sample", bad(Map(bad=7), 4))
    show("bad collate", bad(Map(), 4, collate_fn=bad_collate))
    show("stream", loader(Stream(7), 3), epochs=2)
    show("bad stream", bad(Stream(7, 5), 2))
    show("whole batches", loader(WholeBatches(), 4))
    show("subset", loader(Subset(Map(), [3, 1, 4, 1, 5]), 2))
    show("concatenated", loader(ConcatDataset([Map(2), Map(3)]), 2, drop_last=True))
    show("tensors", loader(TensorDataset(torch.arange(7)), 3, shuffle=True))
    show("left early", loader(Map(), 2), epochs=2, stop=1)


def show_workers():
    more = {"num_workers": 2, "persistent_workers": True}
    show("persistent", lambda: DataLoader(Map(), 4, shuffle=True, **more), epochs=2)
    show("persistent stream", lambda: DataLoader(Stream(7), 2, **more), epochs=2)
    spawn = {"num_workers": 1, "multiprocessing_context": "spawn"}
    show("spawned", lambda: DataLoader(Map(5), 4, worker_init_fn=seed_worker, **spawn))
    show("in time", lambda: DataLoader(Map(5), 4, num_workers=1, timeout=60))
    show("impossible", lambda: DataLoader(Map(), 4, num_workers=-1))


def show_objects():
    loader = DataLoader(Map(6), 2)
    one, two = iter(loader), iter(loader)
    print("twice", next(one)[1], next(two)[1], next(one)[1])
    print(inspect.signature(DataLoader.__init__), inspect.signature(loader.__init__))
    print(DataLoader.__init__.__qualname__, DataLoader.__iter__.__doc__)
    print(sorted(k for k in vars(loader) if not k.startswith("_")))
    again = pickle.loads(pickle.dumps(loader.dataset)).transform.transforms
    print(
        again[0], again[1] is double, loader.dataset.transform.transforms[1] is double
    )
    print(copy.deepcopy(loader).dataset.transform.transforms[0])
    inner = [DataLoader(Map(4), 2) for _ in range(2)]
    outer = DataLoader(inner, batch_size=None, collate_fn=lambda l: [x[1] for x in l])
    print("nested", list(outer))
    out = []
    thread = threading.Thread(target=lambda: out.extend(x[1] for x in loader))
    thread.start()
    thread.join()
    print("in a thread", out)

    class Times10(DataLoader):
        def __iter__(self):
            for batch in super().__iter__():
                yield batch[1] * 10

    print("subclass", list(Times10(Map(5), 2)))
    pipe = IterableWrapper(range(6)).map(double)
    print("pipe", list(DataLoader(pipe, batch_size=2)))
    try:
        pickle.dumps(one)
    except NotImplementedError as error:
        print("pickle", error)


def show_freed():
    gc.disable()
    for make in (
        lambda: DataLoader(Stream(5), 2),
        lambda: DataLoader(Map(5), 2),
        lambda: DataLoader(Map(5), 2, num_workers=1),
    ):
        iterator = iter(make())
        next(iterator)
        parts = [iterator, vars(iterator).get("_dataset_fetcher"), iterator._dataset]
        parts.append(vars(iterator).get("_data_queue"))
        watched = [weakref.ref(p) for p in parts if p is not None]
        del iterator, parts
        print("freed", [w() is None for w in watched])


def main():
    torch.manual_seed(7)
    random.seed(7)
    np.random.seed(7)
    show_objects()
    show_freed()
    show_kinds(0)
    show_kinds(2)
    show_workers()
    print("end", torch.rand(1).item(), torch.initial_seed(), sys.getrecursionlimit())


if __name__ == "__main__":
    main()
