"""What agents say to each other: what is believed, and what is dropped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.errors import InvalidInput
from lastcall.watchdog.messages import LONGEST, Answer, Question, checked, decode, encode

OLD, NEW, OTHER = b"o" * 32, b"n" * 32, b"x" * 40
NONCE = bytes(range(16))
MESSAGES = [Question(NONCE), Answer(NONCE, "n1"), Answer(NONCE, "n" * 253)]


@pytest.mark.parametrize("message", MESSAGES)
def test_what_was_said_is_heard(message):
    assert decode(encode(message, [NEW]), [NEW]) == message
    assert decode(encode(message, [NEW, OLD]), [OLD, NEW]) == message
    assert decode(encode(message, [OLD]), [NEW, OLD]) == message
    assert decode(encode(message, [OTHER]), [NEW, OLD]) is None
    assert len(encode(message, [NEW])) <= LONGEST


@pytest.mark.parametrize("message", MESSAGES)
def test_every_bit_is_signed(message):
    data = encode(message, [NEW])
    for index in range(len(data)):
        changed = bytearray(data)
        changed[index] ^= 1
        assert decode(bytes(changed), [NEW]) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"LCP1",
        b"LCP1?" + NONCE + b"x",
        b"LCP1!" + NONCE,
        b"LCP1!" + NONCE + b"n" * 254,
        b"LCP1#" + NONCE,
        b"LCP2?" + NONCE,
        b"LCP1?" + NONCE[:15],
    ],
)
def test_what_is_signed_and_not_understood_is_dropped(body):
    import hmac

    assert decode(body + hmac.digest(NEW, body, "sha256"), [NEW]) is None


@given(st.binary(max_size=LONGEST + 10))
def test_anything_else_is_dropped(data):
    assert decode(data, [NEW]) is None
    assert decode(b"LCP1" + data, [NEW]) is None


def test_a_question_is_not_longer_than_its_answer_by_much():
    """Who pretends to be another brings about no flood."""
    assert len(encode(Answer(NONCE, "node-1"), [NEW])) <= len(encode(Question(NONCE), [NEW])) + 6


def test_keys_have_to_keep_a_secret():
    assert checked([NEW, OTHER]) == (NEW, OTHER)
    with pytest.raises(InvalidInput, match="no key: a Secret"):
        checked([])
    with pytest.raises(InvalidInput, match="key 2: 31 bytes: must be 32 or more"):
        checked([NEW, b"x" * 31])
