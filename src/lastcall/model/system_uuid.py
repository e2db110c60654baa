"""The system UUID of a machine as its firmware reports it, and placeholder values that identify no machine (pure)."""

import re

_UNSET = frozenset(
    (
        "000102030405060708090a0b0c0d0e0f",
        "03000200040005000006000700080009",
        "0123456789abcdef0123456789abcdef",
        "12345678123456789012123456789012",
        "123456781234567890abcddeefaabbcc",
        "1234567890abcdef1234567890abcdef",
        "4c4c454400002010802080c04f202020",
        "deadbeefdeadbeefdeadbeefdeadbeef",
    )
)
"""Placeholders: boards without a UUID (AMI's default), made-up ones of tools, and Dell's with a blank service tag."""


def uuid_spellings(text: str) -> frozenset[str]:
    """Its hexadecimal digits in both byte orders; empty if it is not a UUID, or a placeholder."""
    digits = text.strip().lower().removeprefix("urn:uuid:").replace("-", "")
    if not re.fullmatch("[0-9a-f]{32}", digits):
        return frozenset()
    pairs = re.findall("..", digits)
    if len(set(pairs)) == 1:  # all zeros, all ones (unwritten flash memory), and the like
        return frozenset()
    spellings = frozenset((digits, "".join(pairs[3::-1] + pairs[5:3:-1] + pairs[7:5:-1] + pairs[8:])))
    return frozenset() if spellings & _UNSET else spellings


def is_unset(text: str) -> bool:
    """Whether the text is a placeholder or empty: two machines that share it need not be the same one."""
    digits = text.strip().replace("-", "")
    return not digits or (bool(re.fullmatch("[0-9a-fA-F]{32}", digits)) and not uuid_spellings(text))
