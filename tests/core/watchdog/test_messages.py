"""What agents say to each other: what is believed, and what is dropped."""

import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.errors import InvalidInput
from lastcall.watchdog.messages import (
    LONGEST,
    PeerAnswer,
    PeerQuestion,
    decode_message,
    encode_message,
    validate_keys,
)

OLD, NEW, OTHER = b"o" * 32, b"n" * 32, b"x" * 40
NONCE = bytes(range(16))
BOOT = "6ad1fdc3-7bf0-4c1e-8a3a-0c7e5b6d2f11"
MESSAGES = [
    PeerQuestion(NONCE, "n1", BOOT, 0),
    PeerQuestion(NONCE, "n" * 253, "b" * 64, 2**64 - 1),
    PeerAnswer(NONCE, "n1"),
    PeerAnswer(NONCE, "n" * 253),
]
ASKED = bytes(8)


@pytest.mark.parametrize("message", MESSAGES)
def test_what_was_said_is_heard(message):
    assert decode_message(encode_message(message, [NEW]), [NEW]) == message
    assert decode_message(encode_message(message, [NEW, OLD]), [OLD, NEW]) == message
    assert decode_message(encode_message(message, [OLD]), [NEW, OLD]) == message
    assert decode_message(encode_message(message, [OTHER]), [NEW, OLD]) is None
    assert len(encode_message(message, [NEW])) <= LONGEST


@pytest.mark.parametrize("message", MESSAGES)
def test_every_bit_is_signed(message):
    data = encode_message(message, [NEW])
    for index in range(len(data)):
        changed = bytearray(data)
        changed[index] ^= 1
        assert decode_message(bytes(changed), [NEW]) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"LCP2",
        b"LCP2?" + NONCE,
        b"LCP2?" + NONCE + ASKED,
        b"LCP2?" + NONCE + ASKED + b"\0n1",
        b"LCP2?" + NONCE + ASKED + b"\2b1",
        b"LCP2?" + NONCE + ASKED + b"\5b1n1",
        b"LCP2?" + NONCE + ASKED + b"\x41" + b"b" * 65 + b"n1",
        b"LCP2?" + NONCE + ASKED + b"\1b" + b"n" * 254,
        b"LCP2!" + NONCE,
        b"LCP2!" + NONCE + b"n" * 254,
        b"LCP2#" + NONCE,
        b"LCP1?" + NONCE,
        b"LCP1!" + NONCE + b"n1",
        b"LCP2?" + NONCE[:15],
    ],
)
def test_what_is_signed_and_not_understood_is_dropped(body):
    assert decode_message(body + hmac.digest(NEW, body, "sha256"), [NEW]) is None


@given(st.binary(max_size=LONGEST))
def test_whatever_is_signed_is_understood_or_dropped(data):
    body = b"LCP2?" + data[: LONGEST - 40]
    found = decode_message(body + hmac.digest(NEW, body, "sha256"), [NEW])
    assert found is None or encode_message(found, [NEW])


@given(st.binary(max_size=LONGEST + 10))
def test_anything_else_is_dropped(data):
    assert decode_message(data, [NEW]) is None
    assert decode_message(b"LCP2" + data, [NEW]) is None


def test_an_answer_is_not_longer_than_its_question():
    """Who pretends to be another brings about no flood."""
    assert len(encode_message(PeerAnswer(NONCE, "node-1"), [NEW])) <= len(
        encode_message(PeerQuestion(NONCE, "node-2", BOOT, 1), [NEW])
    )


def test_keys_have_to_keep_a_secret():
    assert validate_keys([NEW, OTHER]) == (NEW, OTHER)
    with pytest.raises(InvalidInput, match="no key: a Secret"):
        validate_keys([])
    with pytest.raises(InvalidInput, match="key 2: 31 bytes: must be 32 or more"):
        validate_keys([NEW, b"x" * 31])
