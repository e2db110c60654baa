"""Runs a fence agent, and kills it with all of its session when its time is over, whatever becomes of who has begun it.

``agent_keeper.py DESCRIPTOR UNTIL COMMAND...``, as the leader of a session: UNTIL is a boottime, and each line that comes
through the descriptor a later one. Who writes there may be stopped or killed: then the time that was told last counts. It
imports nothing of lastcall, so that it is there in some 20 ms. It ends as the command does, with 128 and the number of the
signal if that was killed, and with 127 if there is no such command. A command whose time is over before it begins is not begun.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Sequence

_LOOK = 0.5
"""Seconds between two looks at the clock: what ``select`` waits by does not count while the machine sleeps."""


def main(arguments: Sequence[str]) -> int:
    """Its exit code."""
    told, until, command = int(arguments[0]), float(arguments[1]), list(arguments[2:])
    os.set_inheritable(told, False)
    woken = _wakeup_descriptor()
    if _boottime() >= until:  # its asker, or the machine, has stood still
        os.killpg(0, signal.SIGKILL)
    try:
        agent = os.posix_spawnp(command[0], command, os.environ, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127
    watched, rest = [woken, told], b""
    while True:
        ready = select.select(watched, [], [], max(0.0, min(_LOOK, until - _boottime())))[0]
        ended, status = os.waitpid(agent, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if _boottime() >= until:
            os.killpg(0, signal.SIGKILL)
        if woken in ready:
            os.read(woken, 64)
        if told in ready:
            until, rest = _read_deadlines(told, until, rest, watched)


def _read_deadlines(told: int, until: float, rest: bytes, watched: list[int]) -> tuple[float, bytes]:
    """The last moment that was told, and what has come of the next line."""
    data = os.read(told, 4096)
    if not data:
        watched.remove(told)
    *lines, rest = (rest + data).split(b"\n")
    return max([until, *map(float, lines)]), rest


def _wakeup_descriptor() -> int:
    """A descriptor that can be read when the agent has ended."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return woken


def _boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
