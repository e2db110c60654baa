"""What real servers of the tests need: ports of their own, and time until they are up."""

import socket
import time


def free_ports(count):
    """Free ports of loopback, all different."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    found = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return found


def wait_until(holds, describe, *, seconds=100):
    """Until it holds; what ``describe`` returns is the failure's message."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, describe()
        time.sleep(0.1)
