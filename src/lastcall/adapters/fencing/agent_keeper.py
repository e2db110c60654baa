"""Runs a fence agent, and kills its whole session at the deadline, even if the parent process has died.

``agent_keeper.py DESCRIPTOR UNTIL COMMAND...`` runs as the leader of a session. UNTIL is a boottime; each line from the
descriptor is a later one. If the writer is stopped or killed, the last deadline received counts. The program imports
nothing of lastcall, so that it starts in some 20 ms. It exits as the command does: with 128 plus the signal number if
that was killed, and with 127 if the command does not exist. A command whose deadline has passed already is not started.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Sequence

_LOOK = 0.5
"""Seconds between two looks at the clock: the timeout of ``select`` does not count while the machine is suspended."""


def main(arguments: Sequence[str]) -> int:
    """Runs the command and returns its exit code."""
    updates, until, command = int(arguments[0]), float(arguments[1]), list(arguments[2:])
    os.set_inheritable(updates, False)
    woken = _wakeup_descriptor()
    if _boottime() >= until:  # its asker, or the machine, has stood still
        os.killpg(0, signal.SIGKILL)
    try:
        agent = os.posix_spawnp(command[0], command, os.environ, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127
    watched, rest = [woken, updates], b""
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
        if updates in ready:
            until, rest = _read_deadlines(updates, until, rest, watched)


def _read_deadlines(updates: int, until: float, rest: bytes, watched: list[int]) -> tuple[float, bytes]:
    """Returns the last deadline that was received, and the incomplete rest of the next line."""
    data = os.read(updates, 4096)
    if not data:
        watched.remove(updates)
    *lines, rest = (rest + data).split(b"\n")
    return max([until, *map(float, lines)]), rest


def _wakeup_descriptor() -> int:
    """A descriptor that becomes readable when the agent has ended."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return woken


def _boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
