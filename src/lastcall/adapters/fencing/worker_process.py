"""The process that puts one question to a device: what all of them do before they ask, and how they answer."""

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
"""Of the time that is left a library may wait so much for one answer: what it says then is better than being killed."""


class FenceRequest(Generic[S]):
    """The question, and the time that is left for it."""

    def __init__(self, question: FenceQuestion[S], clock: Clock) -> None:
        self.action: FenceAction = question.action
        self.settings = question.settings
        self.secrets: list[str] = []
        """Those that it has found by itself: no message shows them."""
        self._deadline = question.deadline
        self._clock = clock

    @property
    def seconds_left(self) -> float:
        """Seconds."""
        return self._deadline - self._clock.boottime()

    @property
    def seconds_per_request(self) -> float:
        """Seconds that one request may take."""
        return max(0.05, self.seconds_left * _PATIENCE)

    def ensure_time_left(self) -> None:
        """Right before what cannot be taken back; TimedOut if it is too late.

        The kernel's timer does not count while the machine sleeps; this clock does.
        """
        if self.seconds_left <= 0:
            raise TimedOut("its time was over before anything was sent")


class _AbruptSocket(socket.socket):
    """Closed at once, whatever the kernel has not sent yet: nothing is delivered for a process that was killed."""

    def connect(self, address: Any, /) -> None:
        """Connects."""
        self.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        super().connect(address)


def serve_question(settings: type[S], answer: Callable[[FenceRequest[S]], FenceReply]) -> None:
    """Reads the question, answers it and ends. ``answer`` may raise; what is no LastcallError is told by its type too."""
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=FenceQuestion[settings])  # type: ignore[valid-type]  # known at run time
    turn = FenceRequest(question, SystemClock())
    _bind_lifetime(question.parent, turn.seconds_left)
    try:
        reply = answer(turn)
    except LastcallError as error:
        reply = error_reply(error)
    except Exception as error:  # whatever a library raises is an answer that could not be had
        reply = error_reply(Unavailable(f"{type(error).__name__}: {error}"))
    reply = msgspec.structs.replace(reply, why=redact_secrets(reply.why, turn.secrets))
    sys.stdout.buffer.write(msgspec.json.encode(reply))
    sys.stdout.flush()


def _bind_lifetime(parent: int, left: float) -> None:
    """From here on the kernel ends this process with its parent, and when its time is over."""
    if left <= 0:
        raise SystemExit("its time was over before it began")
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, left)
    if ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise SystemExit("prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        raise SystemExit("who has asked is gone")
    socket.socket = _AbruptSocket  # type: ignore[misc]  # whatever a library opens
    logging.disable(logging.CRITICAL)  # libraries log what they send
