"""A program on a terminal of its own, as a person would use it."""

import os
import pty
import re
import select
import signal
import time


class Terminal:
    """Starts `command` as leader of a session with a new terminal."""

    def __init__(self, command, cwd, env):
        self.text = ""
        self.ended = False
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(command[0], [str(c) for c in command], env)

    def __enter__(self):
        return self

    def hang_up(self):
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def __exit__(self, *_):
        self.hang_up()
        for _ in range(0 if self.ended else 100):
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                return
            time.sleep(0.02)
        if self.ended:
            return
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def _read(self, seconds):
        if self.fd < 0:
            time.sleep(seconds)
            return
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return
        try:
            self.text += os.read(self.fd, 65536).decode(errors="replace")
        except OSError:  # the last process has closed the other side
            time.sleep(0.01)

    def expect(self, pattern, seconds=60, after=0):
        """Waits until the pattern appears behind position `after`; gives the match."""
        end = time.monotonic() + seconds
        while True:
            found = re.compile(pattern, re.M).search(self.text, after)
            if found:
                return found
            assert time.monotonic() < end, f"no {pattern!r} in {self.text[after:]!r}"
            self._read(0.05)

    def listen(self, seconds):
        """Reads for a while: what must not come would come now."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._read(0.05)
        return self.text

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self, seconds=60):
        """The status of the leader as waitpid gives it; reads on meanwhile."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._read(0)
                self.ended = True
                return status
            self._read(0.02)
        raise AssertionError(f"still running: {self.text!r}")
