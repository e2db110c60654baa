"""Quantities such as ``100m``, ``1.5Gi`` or ``2e3`` (``k8s.io/apimachinery/pkg/api/resource``), pure."""

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d+)?")
_BINARY = {suffix: Fraction(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
_DECIMAL = {
    suffix: Fraction(10) ** power
    for suffix, power in {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}.items()
}

_WRITTEN = re.compile(r"[+-]?0*(\d*)\.?(\d*)([eEinumkKMGTP]*[-+]?\d*)")
_LONGEST = 1000
"""Maximum digits of a number and of a power of ten: Go has no such limit and computes for minutes beyond it."""

_NANO, _MILLI, _LARGEST = Fraction(1, 10**9), Fraction(1, 1000), Fraction((1 << 63) - 1)

RULE = r"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@lru_cache(maxsize=1024)  # cached: many pods contain the same few
def parse_quantity(text: str) -> Fraction:
    """The number of the quantity; ValueError if it is invalid."""
    found = _FORM.fullmatch(text)
    if not found:
        raise ValueError(_fault(text))
    suffix = found[2] or ""
    scale = _BINARY.get(suffix, _DECIMAL.get(suffix))
    if len(found[1]) > _LONGEST:
        raise ValueError("unable to parse numeric part of quantity")
    if scale is not None:
        return Fraction(found[1]) * scale
    if len(suffix) > 6 or abs(int(suffix[1:])) > _LONGEST:
        raise ValueError("unable to parse quantity's suffix")
    return Fraction(found[1]) * Fraction(10) ** int(suffix[1:])


@lru_cache(maxsize=1024)
def canonical_quantity(text: str, *, milli: bool = False) -> str:
    """Go's canonical form: no fraction, and the largest suffix of the same family that loses nothing.

    Rounds up to ``n``, or with ``milli`` to ``m``. ValueError if it is invalid.
    """
    exact = parse_quantity(text)
    if not milli and _is_canonical(text):
        return text
    step = _MILLI if milli else _NANO
    size = math.ceil(abs(exact) / step) * step
    suffix = text.lstrip("+-.0123456789")
    if suffix in _BINARY:
        size = min(size, _LARGEST)
        if size >= 1024 and size.denominator == 1:
            return _sign(exact) + _scale_text(size, [*_BINARY.items()])
    if suffix[1:].lstrip("+-").isdigit():
        return _sign(exact) + _with_exponent(size)
    return _sign(exact) + _scale_text(size, [*_DECIMAL.items()])


def _sign(number: Fraction) -> str:
    return "-" if number < 0 else ""


def _scale_text(size: Fraction, units: Sequence[tuple[str, Fraction]]) -> str:
    """In the largest unit that yields a whole number."""
    if not size:
        return "0"
    whole = [(suffix, size / unit) for suffix, unit in units if (size / unit).denominator == 1]
    suffix, number = whole[-1] if whole else ("", Fraction(math.ceil(size)))
    return f"{number}{suffix}"


def _with_exponent(size: Fraction) -> str:
    """With the largest multiple of three as exponent that yields a whole number; ``size`` is in nanos."""
    digits = str(math.ceil(size / _NANO))
    power = (len(digits) - len(digits.rstrip("0")) - 9) // 3 * 3
    whole = digits[: len(digits) - power - 9]
    return (f"{whole}e{power}" if power else whole) if size else "0"


def _is_canonical(text: str) -> bool:
    """Whether Go's fast path considers the text canonical (``ParseQuantity``), so that it stays unchanged."""
    found = _WRITTEN.fullmatch(text)
    if not found:
        return False
    number, fraction, suffix = found.groups()
    digits = number + fraction
    if not digits or len(digits) > 15:
        return text == "0"
    if suffix in _BINARY:
        return not fraction and bool(int(digits) & 7)
    power = int(suffix[1:]) if suffix[1:].lstrip("+-").isdigit() else round(math.log10(_DECIMAL[suffix]))
    return (power - len(fraction)) % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def _fault(text: str) -> str:
    found = _WRITTEN.fullmatch(text)
    if not text or not found:
        return RULE
    suffix = found[3]
    known = suffix in _BINARY or suffix in _DECIMAL or re.fullmatch(r"[eE][+-]?\d+", suffix)
    return "unable to parse numeric part of quantity" if known else "unable to parse quantity's suffix"
