"""sonde.optimize: faster loading, preprocessing and reading, proven before it is used.

    import sonde

    config = sonde.Config(num_workers=8, cache_size=5000)
    loader, receipt = sonde.optimize.loader(loader, config, step=train_step)
    data, receipt = sonde.optimize.dataset(dataset, config)
    pipeline = sonde.optimize.preprocessing([clean, tokenize], samples, config)
    with sonde.optimize.memory(config) as scope:
        ...
    for block in sonde.optimize.reader("train.bin", config, process=parse):
        ...

A change is made when interleaved pairs of runs prove that it saves at least
`optimization_threshold` of the time, and when it gives the same results; what changes
training needs `allow=`. Each decision, with what was tried, is in a receipt.

torch and numpy are used when the data are theirs; loader() alone needs torch.
"""

from __future__ import annotations

from ._analyse import Analysis, analyse
from ._cache import CachedDataset
from ._codec import CodecError
from ._dataset import Prepared, dataset
from ._files import StoreError, load, store
from ._loader import Loaded, loader
from ._memory import MemoryLimitError, MemoryScope, memory
from ._preprocessing import Pipeline, preprocessing
from ._reader import Reader, read, reader
from ._receipt import Gain, Receipt, Trial
from ._shrink import shrink
from ._stream import StreamedDataset, chunks
from ._values import bytes_of
from ._ways import WorkerDied

__all__ = [
    "Analysis",
    "CachedDataset",
    "CodecError",
    "Gain",
    "Loaded",
    "MemoryLimitError",
    "MemoryScope",
    "Pipeline",
    "Prepared",
    "Reader",
    "Receipt",
    "StoreError",
    "StreamedDataset",
    "Trial",
    "WorkerDied",
    "analyse",
    "bytes_of",
    "chunks",
    "dataset",
    "load",
    "loader",
    "memory",
    "preprocessing",
    "read",
    "reader",
    "shrink",
    "store",
]
