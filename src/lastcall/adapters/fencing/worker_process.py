"""The process of one device request: what every worker does before the request, and how it replies."""

import ctypes
import logging
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from lastcall.adapters.fencing.fence_worker import FenceAction, FenceQuestion, FenceReply, error_reply
from lastcall.adapters.fencing.redaction import redact_secrets
from lastcall.adapters.host.clock import SystemClock
from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall.ports.node import Clock

S = TypeVar("S")

_PR_SET_PDEATHSIG = 1
_PATIENCE = 0.8
"""Share of the remaining time that a library may wait for one answer: its own error is more useful than being killed.
"""


class FenceRequest(Generic[S]):
    """The request, and the time that is left for it."""

    def __init__(self, question: FenceQuestion[S], clock: Clock) -> None:
        self.action: FenceAction = question.action
        self.settings = question.settings
        self.secrets: list[str] = []
        """Secrets that the worker has found itself; no message shows them."""
        self._deadline = question.deadline
        self._clock = clock

    @property
    def seconds_left(self) -> float:
        """Seconds."""
        return self._deadline - self._clock.boottime()

    @property
    def seconds_per_request(self) -> float:
        """Seconds that one request to the device may take."""
        return max(0.05, self.seconds_left * _PATIENCE)

    def ensure_time_left(self) -> None:
        """Called right before an irreversible step; raises TimedOut if it is too late.

        The kernel's timer does not count while the machine is suspended; this clock does.
        """
        if self.seconds_left <= 0:
            raise TimedOut("its time was over before anything was sent")


class _AbruptSocket(socket.socket):
    """A socket that drops unsent data when it is closed: nothing is delivered after its process was killed."""

    def connect(self, address: Any, /) -> None:
        """Connects."""
        self.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        super().connect(address)


def serve_question(settings: type[S], answer: Callable[[FenceRequest[S]], FenceReply]) -> None:
    """Reads the request, answers it and ends. ``answer`` may raise; the reply names the type of a foreign error."""
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=FenceQuestion[settings])  # type: ignore[valid-type]  # known at run time
    turn = FenceRequest(question, SystemClock())
    _bind_lifetime(question.parent, turn.seconds_left)
    try:
        reply = answer(turn)
    except LastcallError as error:
        reply = error_reply(error)
    except Exception as error:  # any error of a library is a reply without an answer
        reply = error_reply(Unavailable(f"{type(error).__name__}: {error}"))
    reply = msgspec.structs.replace(reply, why=redact_secrets(reply.why, turn.secrets))
    sys.stdout.buffer.write(msgspec.json.encode(reply))
    sys.stdout.flush()


def _bind_lifetime(parent: int, left: float) -> None:
    """Makes the kernel end this process with its parent, and at the deadline."""
    if left <= 0:
        raise SystemExit("its time was over before it began")
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, left)
    if ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise SystemExit("prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        raise SystemExit("the parent process is gone")
    socket.socket = _AbruptSocket  # type: ignore[misc]  # whatever a library opens
    logging.disable(logging.CRITICAL)  # libraries log the data that they send
