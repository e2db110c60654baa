"""One request to a device or a cloud, sent by a process of its own that is killed at its deadline.

The libraries for Redfish and EC2 block, resolve names, retry and wait as they like. A request in a thread could not be
withdrawn, and a power-off could be sent after our leadership has ended. So each request has its own process, which ends
at the first of these events:

- it answers;
- who has asked kills it, when the time is over or when nobody waits any more;
- the kernel ends it by a timer that it sets for itself before it does anything (the asker may hang);
- the kernel ends it when the asker dies (PR_SET_PDEATHSIG).

The end drops its connections, with the data that the kernel has not sent yet (SO_LINGER of 0). Whatever the device
received before, it received in time.

A request costs 0.3 s of CPU (EC2: 0.7 s) and is sent only for nodes in trouble. In return, the controller needs 40 MiB
less for libraries. Settings and their secrets are passed over standard input and are not kept.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

import msgspec

from lastcall.adapters.fencing.redaction import redact_secrets
from lastcall.adapters.host.module_process import run_module
from lastcall.aio import timeout
from lastcall.errors import LastcallError, RefusedForSafety, TimedOut, Unavailable
from lastcall.model.base import Facts
from lastcall.ports.fences import FenceAnswer, FenceTarget
from lastcall.ports.node import Clock

S = TypeVar("S")

_MOST_SAID = 500


class FenceAction(Enum):
    """The kinds of requests."""

    TARGET = "target"
    STATUS = "status"
    OFF = "off"
    ON = "on"


class FenceQuestion(Facts, Generic[S], frozen=True):
    """The input of the worker process, on its standard input."""

    action: FenceAction
    deadline: float
    """Boottime of the deadline."""
    parent: int
    """The parent process."""
    settings: S


class FenceReply(Facts, frozen=True):
    """The output of the worker process: an answer, or a fault with its reason."""

    fault: str = ""
    """A key of FAULTS; empty if there is no fault."""
    why: str = ""
    answer: FenceAnswer | None = None
    target: FenceTarget | None = None


FAULTS: Mapping[str, type[LastcallError]] = {
    "unavailable": Unavailable,
    "timed out": TimedOut,
    "refused": RefusedForSafety,
}


def error_reply(error: LastcallError) -> FenceReply:
    """An error as a reply."""
    name = next((name for name, kind in FAULTS.items() if isinstance(error, kind)), "unavailable")
    return FenceReply(fault=name, why=str(error))


@dataclass(frozen=True)
class FenceWorker:
    """Runs ``module`` with only ``environment`` in its environment; ``secrets`` are redacted in its output."""

    module: str
    settings: Facts
    clock: Clock
    environment: Mapping[str, str]
    secrets: tuple[str, ...] = ()

    async def ask(self, action: FenceAction, within: float) -> FenceReply:
        """Returns the answer.

        Raises Unavailable, TimedOut or RefusedForSafety as the worker reports them, and Unavailable or TimedOut if
        there is no answer.
        """
        question = FenceQuestion(
            action=action, deadline=self.clock.boottime() + within, parent=os.getpid(), settings=self.settings
        )
        if within <= 0:
            raise RefusedForSafety("no time is left to ask")
        try:
            async with timeout(within):
                code, output, said = await run_module(self.module, msgspec.json.encode(question), self.environment)
        except TimeoutError:
            raise TimedOut(f"no answer within {within:g} s") from None
        try:
            reply = msgspec.json.decode(output, type=FenceReply)
        except (msgspec.DecodeError, UnicodeError):
            raise self._missing_answer_error(code, said) from None
        if reply.fault:
            raise FAULTS.get(reply.fault, Unavailable)(self._redacted_line(reply.why))
        return reply

    def _missing_answer_error(self, code: int, said: bytes) -> LastcallError:
        if code < 0:
            return TimedOut(f"it was ended by signal {-code} before it had an answer")
        return Unavailable(f"{self.module} failed with {code}: {self._redacted_line(said.decode(errors='replace'))}")

    def _redacted_line(self, text: str) -> str:
        """Its last line, without secrets."""
        return " ".join(redact_secrets(text, self.secrets).split())[-_MOST_SAID:]
