"""Becomes a container's shim: run by path with ``python -I -S``, so that it imports nothing of lastcall.

Arguments: the container's directory, its working directory, then the arguments of ``shim.sh``. It sheds what a process
inherits (descriptors, ignored and blocked signals, umask), becomes a subreaper, writes its identity into the file
``shim``, and executes the shell in its own place. That preserves the identity and the subreaper attribute (prctl(2),
PR_SET_CHILD_SUBREAPER, survives ``execve``). Between fork and exec in the agent, all this would be Python code in the
fork of a process that may have threads.
"""

# pathlib would take longer to import than all the rest; and to become another program is what this is for:
# ruff: noqa: PTH108, PTH118, PTH120, PTH123, PTH208, S606

import ctypes
import os
import signal
import sys

_PR_SET_CHILD_SUBREAPER = 36


def main(directory: str, working_directory: str, *arguments: str) -> None:
    """Never returns: it runs the shim or raises."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > 2:
            _close(descriptor)
    os.umask(0o022)
    os.chdir(working_directory)
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("prctl(PR_SET_CHILD_SUBREAPER) failed")
    with open(os.path.join(os.path.dirname(__file__), "shim.sh"), encoding="utf-8") as file:
        script = file.read()
    _claim(directory)
    os.execv("/bin/sh", ("sh", "-c", script, "lastcall-shim", directory, *arguments))


def _claim(directory: str) -> None:
    """Creates the file atomically; if it exists already, this container must not be started any more."""
    draft = os.path.join(directory, f"shim.{os.getpid()}")
    with open("/proc/self/stat", encoding="utf-8") as stat, open(draft, "w", encoding="utf-8") as file:
        file.write(stat.read())
    os.link(draft, os.path.join(directory, "shim"))
    os.unlink(draft)


def _close(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:
        pass  # the descriptor that listed the others


if __name__ == "__main__":
    main(*sys.argv[1:])
