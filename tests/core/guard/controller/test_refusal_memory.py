"""Which review asks the same as one before: all of its text but the uid, at the place where the API server writes it."""

from weakref import ref

import pytest

from lastcall.guard.controller.refusal_memory import MOST_BYTES, ROOM, Refusal, RefusalMemory, read_question
from lastcall.guard.decisions.verdict import RemovalVerdict
from lastcall.model.admission import Removal, RemovalKind, RequestUser
from lastcall.model.guard_facts import GuardFacts

ONE, OTHER = "12345678-90ab-cdef-1234-567890abcdef", "00000000-0000-0000-0000-000000000000"
REMOVAL = Removal(RemovalKind.DELETE, namespace="shop", name="db-0", user=RequestUser())
FACTS = GuardFacts()
VERDICT = RemovalVerdict(allowed=False, reason="preparing", message="held")


def review(uid, rest="db-0"):
    return f'{{"kind":"AdmissionReview","request":{{"uid":"{uid}","name":"{rest}"}}}}'.encode()


def refusal(uid, *, answer='{{"uid":"{}","allowed":false}}'):
    return Refusal(REMOVAL, VERDICT, ref(FACTS), answer.format(uid).encode())


def remembering(data, uid=ONE, **how):
    memory = RefusalMemory()
    if question := read_question(data):
        memory.remember(question, uid, refusal(uid, **how))
    return memory


def find(memory, data):
    question = read_question(data)
    return memory.find(question) if question else None


def test_the_same_review_has_the_same_answer_with_its_own_uid():
    found = find(remembering(review(ONE)), review(OTHER))
    assert found.answer == refusal(OTHER).answer
    assert found.refusal.removal is REMOVAL


@pytest.mark.parametrize(
    "data",
    [
        review(OTHER, "db-1"),
        review(OTHER) + b" ",
        review("0" * 36 + "0"),
        review('","x":"' + "0" * 29),
        review(OTHER.upper().replace("0", "A")),
        b"",
        b"{}",
    ],
    ids=["another name", "a space more", "a longer uid", "no uid but JSON", "large letters", "nothing", "no uid"],
)
def test_another_review_is_not_known(data):
    assert find(remembering(review(ONE)), data) is None


@pytest.mark.parametrize(
    ("data", "uid", "how"),
    [
        (review(ONE, ONE), ONE, {}),
        (review(ONE), OTHER, {}),
        (review(ONE, "x" * MOST_BYTES), ONE, {}),
        (b" " * 300 + review(ONE), ONE, {}),
        (review(ONE), ONE, {"answer": "{0} {0}"}),
    ],
    ids=["the uid twice", "another uid before it", "a large one", "the uid far behind", "the uid twice in the answer"],
)
def test_what_cannot_be_told_apart_is_not_remembered(data, uid, how):
    memory = remembering(data, uid, **how)
    assert find(memory, data) is None
    assert find(memory, data.replace(ONE.encode(), OTHER.encode())) is None


def test_the_room_is_limited():
    memory = remembering(review(ONE))
    assert find(memory, review(OTHER)), "asked again"
    for number in range(ROOM):
        memory.remember(read_question(review(ONE, f"db-{number + 1}")), ONE, refusal(ONE))
    assert find(memory, review(ONE)) is None
    assert find(memory, review(OTHER, f"db-{ROOM}"))


def test_reviews_that_differ_far_behind_are_told_apart():
    """The last one is known."""
    long, other = ("x" * 4000 + end for end in ("1", "2"))
    memory = remembering(review(ONE, long))
    assert find(memory, review(OTHER, long))
    assert find(memory, review(OTHER, other)) is None
    memory.remember(read_question(review(ONE, other)), ONE, refusal(ONE))
    assert find(memory, review(OTHER, other))
    assert find(memory, review(OTHER, long)) is None


def test_reviews_that_differ_before_the_uid_are_told_apart():
    assert find(remembering(b" " + review(ONE)), review(OTHER) + b" ") is None
    assert find(remembering(review(ONE)), review(OTHER).replace(b"AdmissionReview", b"AdmissionREVIEW")) is None
