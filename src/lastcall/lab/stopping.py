"""What ends a program of the lab that somebody has started in a terminal."""

import asyncio
import signal
from collections.abc import Callable, Iterator


def at_signals(stop: Callable[[], object]) -> None:
    """``stop`` is called at Ctrl-C, at SIGTERM, and when the terminal is closed; at each of them again."""
    loop = asyncio.get_running_loop()
    for number in _ends():
        loop.add_signal_handler(number, stop)


def _ends() -> Iterator[signal.Signals]:
    yield signal.SIGINT
    yield signal.SIGTERM
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup has it ignored, and means it
        yield signal.SIGHUP
