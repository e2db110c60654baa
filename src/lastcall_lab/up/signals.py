"""What ends a program of the lab that somebody has started in a terminal."""

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator


def exit_at_signals() -> None:
    """The same signals end a program that has done nothing yet, with exit code 0; until ``call_at_signals`` is called."""

    def leave(number: int, frame: object) -> None:
        sys.exit(0)

    for number in _end_signals():
        signal.signal(number, leave)


def call_at_signals(stop: Callable[[], object]) -> None:
    """``stop`` is called at Ctrl-C, at SIGTERM, and when the terminal is closed; at each of them again."""
    loop = asyncio.get_running_loop()
    for number in _end_signals():
        loop.add_signal_handler(number, stop)


def _end_signals() -> Iterator[signal.Signals]:
    yield signal.SIGINT
    yield signal.SIGTERM
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup has it ignored, and means it
        yield signal.SIGHUP
