"""Python that calls C that calls Python: a known shape, and the CPU time of each part.

Says on stdout, as JSON, how much CPU time its main thread used in each function.
"""

import hashlib
import json
import sys
import threading
import time
import zlib

DATA = bytes(range(256)) * 300
DEPTH = 12


def hashing():
    return hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 12000)  # HASH


def slow_key(number):
    zlib.compress(DATA, 9)  # KEY
    return -number


def sorting():
    return sorted(range(12), key=slow_key)  # SORT


def dig(depth):
    if depth:
        return dig(depth - 1)  # DEEPER
    return [zlib.compress(DATA, 9) for _ in range(8)]


def looping(count):
    total = 0
    for i in range(count):
        total += i * i % 7
    return total


def other_hash():
    return hashlib.pbkdf2_hmac("sha512", b"password", b"salt", 4000)  # OTHER


def other(until):
    while time.monotonic() < until:
        other_hash()
        time.sleep(0.01)


def main(seconds):
    until = time.monotonic() + seconds
    spent = {"hashing": 0.0, "sorting": 0.0, "dig": 0.0, "looping": 0.0}
    thread = threading.Thread(target=other, args=(until,), name="other")
    thread.start()
    while time.monotonic() < until:
        for name, call in (
            ("hashing", hashing),
            ("sorting", sorting),
            ("dig", lambda: dig(DEPTH)),
            ("looping", lambda: looping(150000)),
        ):
            before = time.thread_time()
            call()
            spent[name] += time.thread_time() - before
    thread.join()
    print(json.dumps(spent))


main(float(sys.argv[1]))
