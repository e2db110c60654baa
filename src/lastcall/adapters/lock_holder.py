"""A program of its own: holds one copy of a lock, and does nothing else.

Started as ``python -I -S lock_holder.py DEADLINE`` with the lock as descriptor 3 and a bound unix socket
(SOCK_SEQPACKET) as descriptor 4. It imports little and nothing of lastcall, so that it stays small and falls with
nothing else. DEADLINE is a CLOCK_BOOTTIME in seconds, ``inf`` for none; the lock is closed then. When the lock is
closed, the program ends.

One packet is one request and is answered by one packet; only the same user and root are heard:

==================  ==================================================================
``give``            the deadline, with a duplicate of the lock attached
``keep``            with a lock attached: it holds that one instead, without a deadline; ``kept``
``close_at TIME``   the deadline from now on; ``set``, but for a time that is past ``closed``
``release``         closes the lock; ``closed``
==================  ==================================================================
"""

import array
import os
import select
import signal
import socket
import struct
import sys
import time

LOCK = 3
LISTENER = 4
PACKET = 256
_SEAL = struct.Struct("3i")
"""pid, uid and gid of SO_PEERCRED."""

_PATIENCE = 0.2
"""Seconds that a client has to say what it wants."""

_NAP = 1.0
"""poll() counts no time of suspend, CLOCK_BOOTTIME does: look at it at least so often (seconds)."""


class Holder:
    """The lock and its deadline."""

    def __init__(self, deadline: float) -> None:
        self.lock = LOCK
        self.deadline = deadline

    def serve(self, listener: socket.socket) -> None:
        """Until the lock is closed."""
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        while self.lock >= 0:
            left = self.deadline - time.clock_gettime(time.CLOCK_BOOTTIME)
            if left <= 0:
                self.close()
            elif poll.poll(min(left, _NAP) * 1000):
                self.hear(listener)

    def hear(self, listener: socket.socket) -> None:
        """One client, one request; whatever a client does wrong ends its connection only."""
        try:
            client, _ = listener.accept()
            with client:
                client.settimeout(_PATIENCE)
                if peer(client)[1] in (0, os.geteuid()):
                    self.answer(client)
        except (OSError, ValueError):
            pass

    def answer(self, client: socket.socket) -> None:
        """The table above."""
        request, descriptors = receive(client)
        word, _, argument = request.decode(errors="replace").partition(" ")
        if word == "give":
            socket.send_fds(client, [repr(self.deadline).encode()], [self.lock])
        elif word == "keep" and len(descriptors) == 1:
            self.replace(descriptors.pop())
            client.send(b"kept")
        elif word == "close_at":
            self.deadline = float(argument)
            if self.deadline <= time.clock_gettime(time.CLOCK_BOOTTIME):
                self.close()
            client.send(b"set" if self.lock >= 0 else b"closed")
        elif word == "release":
            self.close()
            client.send(b"closed")
        for descriptor in descriptors:
            os.close(descriptor)

    def replace(self, descriptor: int) -> None:
        """The new one is held before the old one is closed."""
        before, self.lock, self.deadline = self.lock, descriptor, float("inf")
        os.close(before)

    def close(self) -> None:
        """The last thing that it does."""
        os.close(self.lock)
        self.lock = -1


def peer(client: socket.socket) -> tuple[int, int]:
    """Pid and uid at the other end."""
    pid, uid, _ = _SEAL.unpack(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _SEAL.size))
    return pid, uid


def receive(client: socket.socket) -> tuple[bytes, list[int]]:
    """A packet with its descriptors, which are close-on-exec from the start."""
    room = socket.CMSG_SPACE(4 * array.array("i").itemsize)
    data, attachments, _, _ = client.recvmsg(PACKET, room, socket.MSG_CMSG_CLOEXEC)
    descriptors = array.array("i")
    for level, kind, content in attachments:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(content[: len(content) - len(content) % descriptors.itemsize])
    return data, list(descriptors)


def main() -> None:
    """Nothing but a request, the deadline or SIGKILL ends it."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)
    os.closerange(LISTENER + 1, os.sysconf("SC_OPEN_MAX"))
    os.chdir("/")
    spare_me_from_the_oom_killer()
    with socket.socket(fileno=LISTENER) as listener:
        listener.listen(8)  # again, so that SO_PEERCRED names this process and not the one that made the socket
        Holder(float(sys.argv[1])).serve(listener)
        os._exit(0)  # at once: nothing is left to tidy up


def spare_me_from_the_oom_killer() -> None:
    """As far as allowed: only root may."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123  (pathlib is big)
            file.write("-999")
    except OSError:
        pass


if __name__ == "__main__":
    main()
