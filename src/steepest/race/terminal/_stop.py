"""Ctrl-C stops a race cleanly; a second one quits at once."""

import os
import signal
import sys
from collections.abc import Callable
from threading import Thread

STOPPED = 130  # the exit code that shells use after Ctrl-C
_SIGNALS = signal.SIGINT, signal.SIGTERM
_SHOW_CURSOR = b"\x1b[?25h\n"  # the progress bars hide it


def _say() -> None:
    note = "stopping at the next evaluation; Ctrl-C again quits at once"
    print(note, file=sys.stderr)


class Stop:
    """A context in which Ctrl-C and SIGTERM request a stop.

    Python runs signal handlers only after the current computation, which may take
    minutes. The wakeup pipe is written at once, and a thread reads it.

    Attributes:
        asked: whether a signal has arrived.
        tell: called on the first signal; by default prints a note on stderr.
    """

    def __init__(self) -> None:
        self.asked = False
        self.tell: Callable[[], None] = _say

    def __enter__(self) -> "Stop":
        self._from, self._to = os.pipe()
        os.set_blocking(self._to, False)
        self._wakeup = signal.set_wakeup_fd(self._to, warn_on_full_buffer=False)
        self._before = {each: signal.signal(each, _nothing) for each in _SIGNALS}
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        for each, before in self._before.items():
            signal.signal(each, before)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._to)
        self._thread.join()  # after it has read all pending bytes
        os.close(self._from)

    def _listen(self) -> None:
        while number := os.read(self._from, 1):
            if number[0] not in _SIGNALS:
                continue
            if self.asked:
                if os.isatty(2):
                    os.write(2, _SHOW_CURSOR)
                os._exit(STOPPED)
            self.asked = True
            self.tell()


def _nothing(number: int, frame: object) -> None:
    """Ignore a signal, which would otherwise end the program."""
