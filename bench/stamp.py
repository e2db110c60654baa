"""What a pod of the bench runs: it writes down when it started and when SIGTERM reached it, and ends at once.

Blocked in sigwait(3) it adds one wake-up, some 0.1 ms, to every figure, the floor's too. It imports nothing of
lastcall, and is run by path with ``python -I -S``. Arguments: the pod's name, the file to which all pods append, and, if
it shall not end at once, the seconds that it takes to end, and its exit code.
"""

import os
import signal
import sys
import time


def main(name: str, truth: str, seconds: str = "0", code: str = "0") -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    file = os.open(truth, os.O_WRONLY | os.O_APPEND)
    os.write(file, _line(name, "start"))
    signal.sigwait({signal.SIGTERM})
    os.write(file, _line(name, "TERM"))
    if seconds != "0":
        time.sleep(float(seconds))
        os.write(file, _line(name, "end"))
    os._exit(int(code))


def _line(name: str, what: str) -> bytes:
    return f"{time.clock_gettime_ns(time.CLOCK_BOOTTIME)} {name} {what}\n".encode()


if __name__ == "__main__":
    main(*sys.argv[1:])
