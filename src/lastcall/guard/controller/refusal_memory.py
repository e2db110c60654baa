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

_SIGN = 512
"""Bytes behind the uid by which reviews are told apart at first: they name the pod, and nearly always the user."""


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
    """A review, where its uid begins, and by what it is looked for: its length, and some bytes."""

    data: bytes
    begin: int
    sign: tuple[int, bytes]

    @property
    def uid(self) -> bytes:
        """The review's."""
        return self.data[self.begin : self.begin + _LENGTH]


class _Known(NamedTuple):
    """What precedes and follows the uid in a review, and in its answer."""

    before: bytes
    after: bytes
    answer_before: bytes
    answer_after: bytes
    refusal: Refusal

    def answer(self, question: Question) -> RepeatedRefusal | None:
        """None if the question of the same sign is another one."""
        if not question.data.endswith(self.after) or not question.data.startswith(self.before):
            return None
        return RepeatedRefusal(self.refusal, self.answer_before + question.uid + self.answer_after)


def read_question(data: bytes) -> Question | None:
    """What a review asks; None if its uid is not where the API server writes it, or it is large."""
    size = len(data)
    if size > MOST_BYTES or (begin := data.find(_BEGIN, 0, _HEAD)) < 0:
        return None
    begin += len(_BEGIN)
    behind = begin + _LENGTH
    return Question(data, begin, (size, data[behind : behind + _SIGN])) if _is_uid(data[begin:behind]) else None


class RefusalMemory:
    """Refusals by what was asked: the last one of each sign. Whether their facts still count is for the caller to see."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, bytes], tuple[Question, Refusal]] = {}
        self._known: dict[tuple[int, bytes], _Known] = {}
        """Of those that were asked again."""

    def find(self, question: Question) -> RepeatedRefusal | None:
        """What the same was answered before; None if it is not remembered.

        None also if the uid is somewhere else in the review or its answer too: it could mean something else there.
        """
        if known := self._known.get(question.sign):
            return known.answer(question)
        if (last := self._last.get(question.sign)) is None:
            return None
        before, refusal = last
        known = _split(before, refusal)
        found = known.answer(question)
        if found is None or before.data.count(before.uid) != 1 or refusal.answer.count(before.uid) != 1:
            return None
        self._known[question.sign] = known
        return found

    def remember(self, question: Question, uid: str, refusal: Refusal) -> None:
        """A review with this uid was refused. Without effect if that is not the question's."""
        if question.uid != uid.encode():
            return
        if len(self._last) >= ROOM and question.sign not in self._last:
            self._last.clear()
            self._known.clear()
        self._last[question.sign] = question, refusal
        self._known.pop(question.sign, None)


def _split(question: Question, refusal: Refusal) -> _Known:
    before, _, after = refusal.answer.partition(question.uid)
    data, begin = question.data, question.begin
    return _Known(data[:begin], data[begin + _LENGTH :], before, after, refusal)
