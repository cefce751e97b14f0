"""Ctrl-C ends a race cleanly; a second one ends it at once."""

import os
import signal
import sys
from collections.abc import Callable
from threading import Thread
from typing import Any

STOPPED = 130  # what a shell says of a program that Ctrl-C has ended
_SIGNALS = signal.SIGINT, signal.SIGTERM
_SHOW_CURSOR = b"\x1b[?25h\n"  # bars hide it


def _say() -> None:
    print("stopping after this look; once more ends at once", file=sys.stderr)


class Stop:
    """While this is entered, Ctrl-C and SIGTERM ask for an end.

    Python hears of a signal when a computation is over, which may take minutes. A byte
    in a pipe is there at once, and a thread reads it meanwhile.

    Attributes:
        asked: whether a signal has come.
        tell: called when the first one comes; by default it says so on stderr.
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

    def __exit__(self, *error: Any) -> None:
        for each, before in self._before.items():
            signal.signal(each, before)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._to)
        self._thread.join()  # has read what came before the end
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


def _nothing(number: int, frame: Any) -> None:
    """A handler: without one, a signal would end the program."""
