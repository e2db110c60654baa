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

_MOST_ASKED = 1024
"""So many texts are known to have been asked; all are forgotten beyond them."""

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


class Question(NamedTuple):
    """The text of a review without the uid, and the uid."""

    text: bytes
    uid: bytes


def read_question(data: bytes) -> Question | None:
    """What a review asks; None if its uid is not where the API server writes it, or it is large."""
    if len(data) > MOST_BYTES or (begin := data.find(_BEGIN, 0, _HEAD)) < 0:
        return None
    begin += len(_BEGIN)
    uid = data[begin : begin + _LENGTH]
    return Question(data[:begin] + data[begin + _LENGTH :], uid) if _is_uid(uid) else None


class RefusalMemory:
    """Refusals by what was asked. Whether their facts still count is for the caller to see."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Refusal, bytes, bytes]] = {}
        """With what precedes and follows the uid in the answer."""
        self._asked: set[int] = set()
        """Hashes of texts."""

    def find(self, question: Question) -> RepeatedRefusal | None:
        """What the same was answered before; None if it is not remembered."""
        if (known := self._known.get(question.text)) is None:
            return None
        refusal, begin, end = known
        return RepeatedRefusal(refusal, begin + question.uid + end)

    def note_asked(self, question: Question) -> bool:
        """Whether the same was asked before: most is asked once, and to remember it would cost more than it saves."""
        one = hash(question.text)
        if one in self._asked:
            return True
        if len(self._asked) >= _MOST_ASKED:
            self._asked.clear()
        self._asked.add(one)
        return False

    def remember(self, question: Question, uid: str, refusal: Refusal) -> None:
        """A review with this uid was refused. Without effect if that is not the question's, or is there once more."""
        known = uid.encode()
        if question.uid != known or known in question.text or refusal.answer.count(known) != 1:
            return
        if len(self._known) >= ROOM:
            self._known.clear()
        begin, _, end = refusal.answer.partition(known)
        self._known[question.text] = refusal, begin, end
