"""A separate program that only holds one copy of a lock.

Started as ``python -I -S lock_holder.py DEADLINE PATIENCE OWNER`` with the lock as descriptor 3 and a bound unix socket
(SOCK_SEQPACKET) as descriptor 4. It imports little, and nothing of lastcall, so that it stays small and fails
independently. DEADLINE is a CLOCK_BOOTTIME in seconds, ``inf`` for none; the lock is closed then. OWNER is the pid of
the program whose lock it is; a later process that asks for the lock becomes the owner. The lock is also closed when the
owner has ended, no deadline is set, and no other owner has come for PATIENCE seconds: otherwise it would delay every
shutdown for nothing. When the lock is closed, the program ends.

One packet is one request and is answered by one packet; only requests of the same user and of root are accepted:

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
"""Seconds within which a client must send its request."""

_NAP = 1.0
"""Seconds between two looks at the clock: poll() does not count suspend, CLOCK_BOOTTIME does."""


class LockHolder:
    """The lock and its deadline."""

    def __init__(self, deadline: float, patience: float) -> None:
        self.lock = LOCK
        self.deadline = deadline
        self.patience = patience
        self.owner = -1
        """The owner's pidfd, -1 if it has ended."""
        self.alone_since = now()

    def serve(self, listener: socket.socket) -> None:
        """Serves requests until the lock is closed."""
        while self.lock >= 0:
            left = self.closing_time() - now()
            if left <= 0:
                self.close()
                break
            poll = select.poll()
            poll.register(listener, select.POLLIN)
            if self.owner >= 0:
                poll.register(self.owner, select.POLLIN)
            ready = [descriptor for descriptor, _ in poll.poll(min(left, _NAP) * 1000)]
            if self.owner in ready:
                self.set_owner(0)
            if listener.fileno() in ready:
                self.accept_request(listener)

    def closing_time(self) -> float:
        """The boottime at which the lock is to be closed, by the current deadline and owner."""
        forsaken = self.owner < 0 and self.deadline == float("inf")
        return self.alone_since + self.patience if forsaken else self.deadline

    def set_owner(self, pid: int) -> None:
        """Sets a new owner; none if that process does not live, as number 0 never does."""
        if self.owner >= 0:
            os.close(self.owner)
        try:
            self.owner = os.pidfd_open(pid)
        except OSError:
            self.owner = -1
            self.alone_since = now()

    def accept_request(self, listener: socket.socket) -> None:
        """Accepts one client with one request; a client's error ends only its own connection."""
        try:
            client, _ = listener.accept()
            with client:
                client.settimeout(_PATIENCE)
                if peer_credentials(client)[1] in (0, os.geteuid()):
                    self.answer_request(client)
        except (OSError, ValueError):
            pass

    def answer_request(self, client: socket.socket) -> None:
        """Answers a request by the table above."""
        request, descriptors = receive_packet(client)
        word, _, argument = request.decode(errors="replace").partition(" ")
        if word in ("give", "keep"):
            self.set_owner(peer_credentials(client)[0])
        if word == "give":
            socket.send_fds(client, [repr(self.deadline).encode()], [self.lock])
        elif word == "keep" and len(descriptors) == 1:
            self.replace_lock(descriptors.pop())
            client.send(b"kept")
        elif word == "close_at":
            self.deadline = float(argument)
            if self.deadline <= now():
                self.close()
            client.send(b"set" if self.lock >= 0 else b"closed")
        elif word == "release":
            self.close()
            client.send(b"closed")
        for descriptor in descriptors:
            os.close(descriptor)

    def replace_lock(self, descriptor: int) -> None:
        """Holds the new lock before it closes the old one."""
        before, self.lock, self.deadline = self.lock, descriptor, float("inf")
        os.close(before)

    def close(self) -> None:
        """Closes the lock and ends the program."""
        os.close(self.lock)
        self.lock = -1


def now() -> float:
    """CLOCK_BOOTTIME, which is the same for every process of one boot."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def peer_credentials(client: socket.socket) -> tuple[int, int]:
    """Pid and uid of the peer."""
    pid, uid, _ = _SEAL.unpack(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _SEAL.size))
    return pid, uid


def receive_packet(client: socket.socket) -> tuple[bytes, list[int]]:
    """A packet with its descriptors, which are close-on-exec from the start."""
    room = socket.CMSG_SPACE(4 * array.array("i").itemsize)
    data, attachments, _, _ = client.recvmsg(PACKET, room, socket.MSG_CMSG_CLOEXEC)
    descriptors = array.array("i")
    for level, kind, content in attachments:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(content[: len(content) - len(content) % descriptors.itemsize])
    return data, list(descriptors)


def main() -> None:
    """Serves; only a request, the deadline or SIGKILL ends it."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)
    os.closerange(LISTENER + 1, os.sysconf("SC_OPEN_MAX"))
    os.chdir("/")
    lower_oom_score()
    with socket.socket(fileno=LISTENER) as listener:
        # Listen again, so that SO_PEERCRED names this process and not the one that made the socket, and with a longer
        # queue for connections that wait by then.
        listener.listen(64)
        holder = LockHolder(float(sys.argv[1]), float(sys.argv[2]))
        holder.set_owner(int(sys.argv[3]) if os.getppid() == int(sys.argv[3]) else 0)
        holder.serve(listener)
        os._exit(0)  # at once: nothing is left to clean up


def lower_oom_score() -> None:
    """Lowers the OOM score as far as allowed: only root may."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123  (pathlib is big)
            file.write("-999")
    except OSError:
        pass


if __name__ == "__main__":
    main()
