"""What a pod of the bench runs: it writes down when it started and when SIGTERM reached it, and ends at once.

Blocked in sigwait(3) it adds one wake-up, some 0.1 ms, to every figure, the floor's too. It imports nothing of
lastcall, and is run by path with ``python -I -S``. Arguments: the pod's name, the file to which all pods append.
"""

import os
import signal
import sys
import time


def main(name: str, truth: str) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    file = os.open(truth, os.O_WRONLY | os.O_APPEND)
    os.write(file, _line(name, "start"))
    signal.sigwait({signal.SIGTERM})
    os.write(file, _line(name, "TERM"))
    os._exit(0)


def _line(name: str, what: str) -> bytes:
    return f"{time.clock_gettime_ns(time.CLOCK_BOOTTIME)} {name} {what}\n".encode()


if __name__ == "__main__":
    main(*sys.argv[1:])
