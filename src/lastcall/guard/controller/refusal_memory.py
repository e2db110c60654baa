"""The last refusals: who asks the same again is refused without his review being read and judged (no I/O).

Controllers that are refused ask again within milliseconds, and their reviews differ in nothing but the uid.
"""

import re
from collections.abc import Callable
from typing import NamedTuple
from weakref import ref

from lastcall.guard.decisions.verdict import RemovalVerdict
from lastcall.model.admission import Removal
from lastcall.model.guard_facts import GuardFacts

ROOM = 64
"""So many refusals are remembered; all are forgotten beyond them."""

MOST_BYTES = 32 * 1024
"""A larger review is not remembered."""

_BEGIN = b'"uid":"'
_HEAD = 256
"""The uid of a review is within its first bytes, as the API server writes it."""

_is_uid: Callable[[bytes], object] = re.compile(rb"[0-9a-f-]{36}").fullmatch
_LENGTH = 36


class Refusal(NamedTuple):
    """A verdict that needs no record, the facts that it rests on, and the answer as JSON.

    The facts are those of a whole namespace: a refusal does not keep them in memory.
    """

    removal: Removal
    verdict: RemovalVerdict
    facts: "ref[GuardFacts]"
    answer: bytes


class RepeatedRefusal(NamedTuple):
    """The same refusal for another review; ``answer`` has the uid of that one."""

    refusal: Refusal
    answer: bytes


class RefusalMemory:
    """Refusals by the text of their reviews without the uid. Whether their facts still count is for the caller to see."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Refusal, bytes, bytes]] = {}
        """With what precedes and follows the uid in the answer."""

    def find(self, data: bytes) -> RepeatedRefusal | None:
        """What the same review was answered before; None if it was not asked."""
        if not self._known or (parts := _split(data)) is None:
            return None
        rest, uid = parts
        if (known := self._known.get(rest)) is None:
            return None
        refusal, begin, end = known
        return RepeatedRefusal(refusal, begin + uid + end)

    def remember(self, data: bytes, uid: str, refusal: Refusal) -> None:
        """A review with this uid was refused. Without effect if the uid is not at its place, or is there once more."""
        parts, known = _split(data), uid.encode()
        if parts is None or parts[1] != known or data.count(known) != 1 or refusal.answer.count(known) != 1:
            return
        if len(self._known) >= ROOM:
            self._known.clear()
        begin, _, end = refusal.answer.partition(known)
        self._known[parts[0]] = refusal, begin, end


def _split(data: bytes) -> tuple[bytes, bytes] | None:
    """The text without the uid, and the uid; None if it is not where the API server writes it."""
    if len(data) > MOST_BYTES or (begin := data.find(_BEGIN, 0, _HEAD)) < 0:
        return None
    begin += len(_BEGIN)
    uid = data[begin : begin + _LENGTH]
    return (data[:begin] + data[begin + _LENGTH :], uid) if _is_uid(uid) else None
