"""Values in files: stored whole or not at all, private, checked when read.

The file, little-endian, 40 bytes of head:

    0   8  b"SONDEVAL"
    8   1  version, 1
    9   1  compression: 0 none, 1 gzip, 2 zstd
    10  1  kind: 0 bytes, 1 text (UTF-8), 2 array (npy), 3 tensor (npy), 4 pickle
    11  5  zero
    16  8  length of the value as it was
    24  16 BLAKE2b of everything behind the head
    40     the value, compressed

A pickle can run code, so one is read only from a file that belongs to this user and that
nobody else can write, in a folder of which the same holds. The checksum finds damage, not
malice.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import pickle
import stat
import struct
import tempfile
from pathlib import Path
from typing import Any, Optional, Union

from ._codec import NAMES, CodecError, codec
from ._values import is_array, is_tensor

PathLike = Union[str, "os.PathLike[str]"]

MAGIC = b"SONDEVAL"
HEAD = struct.Struct("<8sBBB5xQ16s")
BYTES, TEXT, ARRAY, TENSOR, PICKLE = range(5)


class StoreError(RuntimeError):
    """A file that is damaged, foreign, or not safe to read."""


# ---- values as bytes -------------------------------------------------------------------


def _npy(array: Any) -> bytes:
    import numpy

    target = io.BytesIO()
    numpy.lib.format.write_array(target, numpy.asarray(array), allow_pickle=False)
    return target.getvalue()


def _pack(value: Any) -> tuple[int, bytes]:
    if type(value) is bytes:
        return BYTES, value
    if type(value) is str:
        with contextlib.suppress(UnicodeEncodeError):
            return TEXT, value.encode()
    with contextlib.suppress(ImportError, ValueError, TypeError, RuntimeError):
        if is_array(value) and type(value).__name__ == "ndarray":
            return ARRAY, _npy(value)
        if _is_plain_tensor(value):
            return TENSOR, _npy(value.numpy())
    return PICKLE, pickle.dumps(value, protocol=5)


def _is_plain_tensor(value: Any) -> bool:
    return (
        is_tensor(value)
        and type(value).__name__ == "Tensor"
        and not value.requires_grad
        and str(value.layout) == "torch.strided"
    )


def _unpack(kind: int, data: bytes) -> Any:
    if kind == BYTES:
        return data
    if kind == TEXT:
        return data.decode()
    if kind == PICKLE:
        return pickle.loads(data)
    import numpy

    array = numpy.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    if kind == ARRAY:
        return array
    import torch

    return torch.from_numpy(array)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def encode(value: Any, compression: str) -> bytes:
    """The file's contents."""
    kind, data = _pack(value)
    chosen = codec(compression)
    packed = chosen.compress(data)
    head = HEAD.pack(MAGIC, 1, chosen.number, kind, len(data), _digest(packed))
    return head + packed


def decode(data: bytes, *, trusted: bool) -> Any:
    """The value; StoreError when the contents are not what was written."""
    if len(data) < HEAD.size:
        raise StoreError("it is too short for a stored value")
    magic, version, number, kind, length, digest = HEAD.unpack_from(data)
    packed = data[HEAD.size :]
    if magic != MAGIC or version != 1 or number not in NAMES or kind > PICKLE:
        raise StoreError("it is not a value stored by sonde, or of a later version")
    if _digest(packed) != digest:
        raise StoreError("its contents are damaged")
    if kind == PICKLE and not trusted:
        raise StoreError("it holds Python objects and others could have written it")
    try:
        raw = codec(NAMES[number]).expand(packed, length)
        if len(raw) != length:
            raise StoreError("it has another length than it says")
        return _unpack(kind, raw)
    except (CodecError, ValueError, EOFError, pickle.UnpicklingError) as error:
        raise StoreError(str(error)) from error


# ---- files -----------------------------------------------------------------------------


def private(info: os.stat_result, sticky: bool = False) -> bool:
    """Whether only this user can write it. `sticky`: a folder like /tmp, where others can
    add files but not replace ours, will do."""
    if info.st_uid == os.geteuid() and not info.st_mode & 0o022:
        return True
    return sticky and (
        bool(info.st_mode & stat.S_ISVTX)
        or (info.st_uid == 0 and not info.st_mode & 0o022)
    )


def private_folder(path: PathLike) -> Path:
    """The folder, made with mode 0700 when missing; StoreError when others own it or can
    write into it."""
    folder = Path(path)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    info = folder.stat()
    if not stat.S_ISDIR(info.st_mode) or not private(info):
        raise StoreError(
            f"cache folder {str(folder)!r} belongs to somebody else or can be written by "
            "others: use a folder of your own, with mode 0700"
        )
    return folder


def write_file(path: PathLike, data: bytes) -> None:
    """The whole file or none, mode 0600."""
    path = Path(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:  # mkstemp made it 0600
            file.write(data)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def read_value(path: PathLike) -> Any:
    """What a file holds. OSError when it cannot be read, StoreError when it is damaged or
    not to be trusted. Opened once: what is checked is what is read."""
    # Without O_NONBLOCK somebody's pipe would be waited for.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            raise StoreError(f"{os.fspath(path)!r} is no plain file")
        with open(handle, "rb", closefd=False) as file:
            data = file.read()
    finally:
        os.close(handle)
    folder = os.stat(Path(path).absolute().parent)
    try:
        return decode(data, trusted=private(info) and private(folder, sticky=True))
    except StoreError as error:
        raise StoreError(f"cannot load {os.fspath(path)!r}: {error}") from error


def store(data: Any, path: PathLike, config: Optional[Any] = None) -> int:
    """Store a value in a file, compressed as `config.compression` says; returns the bytes
    written.

        sonde.optimize.store({"accuracy": 0.93}, "result.sonde")
        sonde.optimize.load("result.sonde")

    Bytes, text, numpy arrays and tensors keep forms that can be read from anybody; anything
    else is pickled. The file is replaced whole, with mode 0600. `optimize_io=False` stores
    without compression.
    """
    from .._config import Config

    config = config or Config()
    contents = encode(data, config.compression if config.optimize_io else "none")
    write_file(path, contents)
    return len(contents)


def load(path: PathLike) -> Any:
    """What store() stored. Pickled values are read only from files that belong to this user
    and that nobody else can write; StoreError says so otherwise."""
    return read_value(path)
