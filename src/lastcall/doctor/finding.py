"""What a check of ``lastcall doctor`` finds."""

from enum import Enum
from typing import NamedTuple

from lastcall.model.base import Facts


class CheckVerdict(Enum):
    """How a check ends. Only a failure makes the command fail."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"
    UNKNOWN = "unknown"


class Check(Facts, frozen=True):
    """One line of the doctor's: what was looked at, what was found, and what to do about it ("" if nothing)."""

    name: str
    verdict: CheckVerdict
    message: str
    fix: str = ""


class Finding(NamedTuple):
    """A check without its name."""

    verdict: CheckVerdict
    message: str
    fix: str = ""


def ok(message: str) -> Finding:
    """As it should be."""
    return Finding(CheckVerdict.OK, message)


def warning(message: str, fix: str) -> Finding:
    """It can do harm, or is about to."""
    return Finding(CheckVerdict.WARNING, message, fix)


def failure(message: str, fix: str) -> Finding:
    """A shutdown would not be graceful."""
    return Finding(CheckVerdict.FAILURE, message, fix)


def unknown(message: str, fix: str = "") -> Finding:
    """It cannot be told; the message says why."""
    return Finding(CheckVerdict.UNKNOWN, message, fix)
