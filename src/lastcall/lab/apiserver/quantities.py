"""Quantities such as ``100m``, ``1.5Gi`` or ``2e3`` (``k8s.io/apimachinery/pkg/api/resource``), pure."""

import re
from fractions import Fraction

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d+)?")
_BINARY = {suffix: Fraction(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
_DECIMAL = {
    suffix: Fraction(10) ** power
    for suffix, power in {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}.items()
}

RULE = r"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def parse(text: str) -> Fraction:
    """The number that it means; ValueError if it is no quantity."""
    found = _FORM.fullmatch(text)
    if not found:
        raise ValueError(RULE)
    number, suffix = Fraction(found[1]), found[2] or ""
    scale = _BINARY.get(suffix, _DECIMAL.get(suffix))
    return number * (scale if scale is not None else Fraction(10) ** int(suffix[1:]))
