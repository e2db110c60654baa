"""The signals that end a program of the lab in a terminal."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator


def exit_at_signals() -> None:
    """Makes the signals end the program with exit code 0, for its start, until ``call_at_signals`` is called.

    The program ends at once, without its clean-up: it must not have made anything yet.
    """

    def leave(number: int, frame: object) -> None:
        os._exit(0)  # an exception is lost in a weakref's callback, and each import has one

    for number in _end_signals():
        signal.signal(number, leave)


def call_at_signals(stop: Callable[[], object]) -> None:
    """Calls ``stop`` at each Ctrl-C, SIGTERM, and closing of the terminal."""
    loop = asyncio.get_running_loop()
    for number in _end_signals():
        loop.add_signal_handler(number, stop)


def _end_signals() -> Iterator[signal.Signals]:
    yield signal.SIGINT
    yield signal.SIGTERM
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup has it ignored on purpose
        yield signal.SIGHUP
