"""Compression by name: gzip of the standard library, zstd of whoever brings it, none.

zstd is taken from Python 3.14's own module, from `zstandard`, or from the system's libzstd,
in this order.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import zlib
from typing import Any, Callable, NamedTuple, Optional


class CodecError(RuntimeError):
    """A compression that this machine does not have, or data that is damaged."""


class Codec(NamedTuple):
    number: int  # in files
    compress: Callable[[bytes], bytes]
    expand: Callable[[bytes, int], bytes]  # data, the length it must have


def _gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def _gunzip(data: bytes, length: int) -> bytes:
    unpacker = zlib.decompressobj(31)
    try:
        found = unpacker.decompress(data, length + 1)  # a bomb ends here
    except zlib.error as error:
        raise CodecError(f"damaged gzip data: {error}") from error
    return found


class _System:
    """libzstd's simple calls."""

    def __init__(self, library: Any) -> None:
        for name in ("ZSTD_compressBound", "ZSTD_compress", "ZSTD_decompress"):
            getattr(library, name).restype = ctypes.c_size_t
        library.ZSTD_isError.argtypes = [ctypes.c_size_t]
        self.library = library

    def compress(self, data: bytes) -> bytes:
        size = ctypes.c_size_t(len(data))
        most = self.library.ZSTD_compressBound(size)
        target = ctypes.create_string_buffer(max(1, most))
        used = self.library.ZSTD_compress(target, ctypes.c_size_t(most), data, size, 3)
        if self.library.ZSTD_isError(used):
            raise CodecError("libzstd cannot compress this")
        return ctypes.string_at(target, used)

    def expand(self, data: bytes, length: int) -> bytes:
        target = ctypes.create_string_buffer(max(1, length))
        room, size = ctypes.c_size_t(length), ctypes.c_size_t(len(data))
        used = self.library.ZSTD_decompress(target, room, data, size)
        if self.library.ZSTD_isError(used):
            raise CodecError("damaged zstd data")
        return ctypes.string_at(target, used)


def _own_zstd() -> Optional[Codec]:
    from compression import zstd  # type: ignore[import-not-found,unused-ignore]

    def expand(data: bytes, length: int) -> bytes:
        return bytes(zstd.ZstdDecompressor().decompress(data, length + 1))

    return Codec(2, zstd.compress, expand)


def _package_zstd() -> Optional[Codec]:
    import zstandard  # type: ignore[import-not-found,unused-ignore]

    def expand(data: bytes, length: int) -> bytes:
        unpacker = zstandard.ZstdDecompressor()
        return bytes(unpacker.decompress(data, max_output_size=max(1, length)))

    return Codec(2, lambda data: bytes(zstandard.compress(data)), expand)


def _system_zstd() -> Optional[Codec]:
    library = _System(ctypes.CDLL("libzstd.so.1"))
    return Codec(2, library.compress, library.expand)


_found: dict[str, Codec] = {
    "none": Codec(0, bytes, lambda data, length: bytes(data)),
    "gzip": Codec(1, _gzip, _gunzip),
}
NAMES = {0: "none", 1: "gzip", 2: "zstd"}


def codec(name: str) -> Codec:
    """The codec; CodecError when this machine has none of that name."""
    if name not in _found:
        for source in (_own_zstd, _package_zstd, _system_zstd):
            try:
                found = source()
            except (ImportError, OSError, AttributeError):
                continue
            if found is not None:
                _found[name] = found
                break
        else:
            raise CodecError(
                "no zstd on this machine: install `zstandard` or libzstd, or use "
                "compression='gzip'"
            )
    return _found[name]
