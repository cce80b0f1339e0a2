"""How each peer is run. tools/bench_peers has built their programs, where it could."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

from places import Failed, environment, measure, memory, new_directory, peer


def why_missing(name: str) -> str:
    """Empty when the peer is there."""
    if peer(name).exists():
        return ""
    reason = Path(f"{peer(name)}.why")
    return (
        reason.read_text().strip()
        if reason.exists()
        else "tools/bench_peers was not run"
    )


def lttng_command(*words: object) -> str:
    done = subprocess.run(
        ["lttng", "--no-sessiond", *map(str, words)],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise Failed(f"lttng {words[0]}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


class LttngDaemon:
    """Ours, for as long as the measurement takes."""

    def __enter__(self):
        self.process = subprocess.Popen(
            ["lttng-sessiond", "--no-kernel", "--quiet"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(100):
            time.sleep(0.05)
            if self.process.poll() is not None:
                raise Failed("lttng-sessiond ended at once")
            try:
                lttng_command("list")
                return self
            except Failed:
                pass
        raise Failed("lttng-sessiond does not answer")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=20)


def lttng(**arguments) -> dict:
    """Recorded into a bounded set of files; the program waits rather than lose."""
    with LttngDaemon(), new_directory(memory()) as output:
        lttng_command("create", "bench", f"--output={output}")
        try:
            lttng_command(
                "enable-channel",
                "--userspace",
                "--session=bench",
                "--subbuf-size=1M",
                "--num-subbuf=16",
                "--blocking-timeout=inf",
                "--tracefile-size=16M",
                "--tracefile-count=4",
                "all",
            )
            lttng_command(
                "enable-event",
                "--userspace",
                "--session=bench",
                "--channel=all",
                "bench:*",
            )
            lttng_command("start", "bench")
            answer = measure(
                peer("lttng"),
                env=environment(LTTNG_UST_ALLOW_BLOCKING="1"),
                **arguments,
            )
            lttng_command("stop", "bench")
            listing = lttng_command("list", "bench")
        finally:
            lttng_command("destroy", "bench")
    lost = re.search(r"Discarded events: *(\d+)", listing)
    answer["lost"] = int(lost.group(1)) if lost else None
    return answer


def lttng_off(**arguments) -> dict:
    return measure(peer("lttng"), state="off", **arguments)


def tracy(**arguments) -> dict:
    answer = measure(peer("tracy"), **arguments)
    return {**answer, "lost": 0}


def uftrace(**arguments) -> dict:
    """uftrace keeps everything: 32 bytes a zone."""
    with new_directory(memory()) as output:
        record = ("uftrace", "record", "--no-event", "--no-libcall", "-d", output)
        answer = measure(peer("uftrace"), prefix=record, **arguments)
        report = subprocess.run(
            ["uftrace", "report", "--no-pager", "-d", output],
            check=False,
            capture_output=True,
            text=True,
        )
        calls = re.search(r"(\d+)  zone$", report.stdout, re.MULTILINE)
        answer["disk_bytes"] = sum(p.stat().st_blocks * 512 for p in output.iterdir())
    if calls:
        answer["lost"] = 2 * (int(answer["zones"]) - int(calls.group(1)))
    return answer
