"""One question to a device or a cloud, put by a process of its own that is killed when its time is over.

The libraries that speak Redfish and EC2 block, resolve names, try again and wait as they like. In a thread nothing could
take such a request back, and a power-off could go out after our leadership has ended. So each question has its own
process, and there are four ends to it, whichever comes first:

- it answers;
- who has asked kills it, when the time is over or when nobody waits any more;
- the kernel ends it by a timer that it sets for itself before it does anything (the asker may hang);
- the kernel ends it when the asker dies (PR_SET_PDEATHSIG).

Its connections are dropped then, and what the kernel had not sent yet with them (SO_LINGER of 0). What the device was
told before that, it was told in time.

It costs 0.3 s of CPU a question (EC2: 0.7 s), asked of nodes in trouble alone, and leaves 40 MiB of libraries out of the
controller. Settings with their secrets go over standard input, and are kept by nobody afterwards.
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

import msgspec

from lastcall.adapters.fencing.redaction import redact_secrets
from lastcall.aio import timeout
from lastcall.errors import LastcallError, RefusedForSafety, TimedOut, Unavailable
from lastcall.model.base import Facts
from lastcall.ports.fences import FenceAnswer, FenceTarget
from lastcall.ports.node import Clock

S = TypeVar("S")

_MOST_SAID = 500


class FenceAction(Enum):
    """What is asked."""

    TARGET = "target"
    STATUS = "status"
    OFF = "off"
    ON = "on"


class FenceQuestion(Facts, Generic[S], frozen=True):
    """What the process reads from its standard input."""

    action: FenceAction
    deadline: float
    """Boottime at which it is over."""
    parent: int
    """The process that has asked."""
    settings: S


class FenceReply(Facts, frozen=True):
    """What it writes: an answer, or a fault and why."""

    fault: str = ""
    """A key of FAULTS; empty if there is none."""
    why: str = ""
    answer: FenceAnswer | None = None
    target: FenceTarget | None = None


FAULTS: Mapping[str, type[LastcallError]] = {
    "unavailable": Unavailable,
    "timed out": TimedOut,
    "refused": RefusedForSafety,
}


def error_reply(error: LastcallError) -> FenceReply:
    """An error as the process tells it."""
    name = next((name for name, kind in FAULTS.items() if isinstance(error, kind)), "unavailable")
    return FenceReply(fault=name, why=str(error))


@dataclass(frozen=True)
class FenceWorker:
    """``module`` is run with nothing in its environment but ``environment``; ``secrets`` are hidden in what it says."""

    module: str
    settings: Facts
    clock: Clock
    environment: Mapping[str, str]
    secrets: tuple[str, ...] = ()

    async def ask(self, action: FenceAction, within: float) -> FenceReply:
        """The answer. Unavailable, TimedOut and RefusedForSafety as the process tells them, or for want of an answer."""
        question = FenceQuestion(
            action=action, deadline=self.clock.boottime() + within, parent=os.getpid(), settings=self.settings
        )
        if within <= 0:
            raise RefusedForSafety("no time is left to ask")
        try:
            async with timeout(within):
                code, output, said = await self._run_process(msgspec.json.encode(question))
        except TimeoutError:
            raise TimedOut(f"no answer within {within:g} s") from None
        try:
            reply = msgspec.json.decode(output, type=FenceReply)
        except (msgspec.DecodeError, UnicodeError):
            raise self._missing_answer_error(code, said) from None
        if reply.fault:
            raise FAULTS.get(reply.fault, Unavailable)(self._redacted_line(reply.why))
        return reply

    async def _run_process(self, question: bytes) -> tuple[int, bytes, bytes]:
        """Exit code, what it has answered, and what else it has said. Nothing of it runs when this is left."""
        command = (sys.executable, "-P", "-s", "-m", self.module)
        path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *command, env={**path, **self.environment}, stdin=pipe, stdout=pipe, stderr=pipe
            )
        except OSError as error:  # no process, memory or descriptor is left
            raise Unavailable(f"{self.module} cannot be started: {error}") from error
        try:
            output, said = await process.communicate(question)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode is not None
        return process.returncode, output, said

    def _missing_answer_error(self, code: int, said: bytes) -> LastcallError:
        if code < 0:
            return TimedOut(f"it was ended by signal {-code} before it had an answer")
        return Unavailable(f"{self.module} failed with {code}: {self._redacted_line(said.decode(errors='replace'))}")

    def _redacted_line(self, text: str) -> str:
        """One line of it, without secrets."""
        return " ".join(redact_secrets(text, self.secrets).split())[-_MOST_SAID:]
