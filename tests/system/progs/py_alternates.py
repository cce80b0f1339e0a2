"""Two ways through one function, a tenth of a millisecond each: whoever looks a little late
finds the other one. Ways of hashing never compress and the other way round."""

import functools
import hashlib
import sys
import time
import zlib

DATA = bytes(range(256)) * 16


def work(kind):
    if kind == "hash":
        return hashlib.pbkdf2_hmac("sha256", b"p", b"s", 60)  # HASH
    return zlib.compress(DATA, 9)  # ZIP


def via_hash():
    return work("hash")


def via_zip():
    return work("zip")


def key_hash(number):
    hashlib.pbkdf2_hmac("sha256", b"p", b"s", 40)
    return number


def key_zip(number):
    zlib.compress(DATA, 6)
    return number


def sort_hash():
    return sorted((3, 1, 2), key=key_hash)


def sort_zip():
    return min((3, 1, 2), key=key_zip)


def reduce_both():
    return functools.reduce(lambda a, b: via_hash() and via_zip() and a, (1, 2, 3))


def main(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        via_hash()
        via_zip()
        sort_hash()
        sort_zip()
        reduce_both()


main(float(sys.argv[1]))
