"""A separate program that is process 1 of the agent's container, and restarts the agent.

Started as ``python -I -S supervisor.py COMMAND...``. It imports little, and nothing of lastcall, so that it stays small
and fails independently. While the agent keeps the kubelet stopped, nobody else restarts its container.

- A COMMAND that ends without having been asked to is started again after a pause. One that keeps ending soon after its
  start is given up: then the container ends too, and the kubelet shows why.
- SIGTERM, SIGINT and SIGHUP are passed on. After SIGTERM or SIGINT the end of COMMAND is the end of this program, with the
  same exit code.
- As process 1 it reaps all processes whose parents have ended.
- COMMAND inherits the reading end of a pipe; $LASTCALL_CONTAINER_PIPE has its number. Only this program has the writing
  end, so the pipe's end of file means that the container has ended, and not only the agent.
"""

import os
import signal
import sys
import time

PIPE_VARIABLE = "LASTCALL_CONTAINER_PIPE"

FIRST_PAUSE = 0.1
"""Seconds before the first restart; each one that follows soon waits twice as long."""

SOON = 10.0
"""Seconds: a command that lives longer counts as started."""

TRIES = 6
"""Starts in a row that end soon, after which the command is given up."""

_STOPS = frozenset({signal.SIGTERM, signal.SIGINT})
_HANDLED = _STOPS | {signal.SIGHUP, signal.SIGCHLD}


def supervise(command: list[str]) -> int:
    """Runs the command until it is stopped or given up; returns its exit code."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)  # a blocked signal waits for sigwait(), also for process 1
    reading, _ = os.pipe()
    os.set_inheritable(reading, True)
    environment = {**os.environ, PIPE_VARIABLE: str(reading)}
    failures = 0
    while True:
        began = now()
        child = os.posix_spawn(command[0], command, environment, setsigmask=[])
        code, stopped = wait_for_child(child)
        failures = 0 if now() - began > SOON else failures + 1
        if stopped or failures == TRIES:
            return code
        pause = FIRST_PAUSE * 2 ** max(0, failures - 1)
        sys.stderr.write(f"supervisor: the agent has ended with {code}; it is started again in {pause:g} s\n")
        if wait_for_stop(pause):
            return code


def wait_for_child(child: int) -> tuple[int, bool]:
    """Passes signals on until the child has ended; returns its exit code, and whether it was asked to stop."""
    stopped = False
    while True:
        number = signal.sigwait(_HANDLED)
        if number == signal.SIGCHLD:
            ended = reap_children()
            if child in ended:
                return ended[child], stopped
        else:
            stopped = stopped or number in _STOPS
            os.kill(child, number)


def wait_for_stop(seconds: float) -> bool:
    """Waits so long; True at once if this program is asked to stop meanwhile."""
    end = now() + seconds
    while (left := end - now()) > 0:
        found = signal.sigtimedwait(_HANDLED, left)
        if found and found.si_signo in _STOPS:
            return True
        reap_children()
    return False


def reap_children() -> dict[int, int]:
    """The exit codes of all children that have ended, by pid; 128 and the number for one that a signal ended."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        code = os.waitstatus_to_exitcode(status)
        ended[pid] = code if code >= 0 else 128 - code


def now() -> float:
    """CLOCK_BOOTTIME in seconds."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


if __name__ == "__main__":
    sys.exit(supervise(sys.argv[1:]))
