"""The result of a check of ``lastcall doctor``."""

from enum import Enum
from typing import NamedTuple

from lastcall.model.base import Facts


class CheckVerdict(Enum):
    """A check's verdict. Only a failure makes the command fail."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"
    UNKNOWN = "unknown"


class Check(Facts, frozen=True):
    """One line of the report: the check, its finding, and what to do about it ("" if nothing)."""

    name: str
    verdict: CheckVerdict
    message: str
    fix: str = ""


class Finding(NamedTuple):
    """A check's result without its name."""

    verdict: CheckVerdict
    message: str
    fix: str = ""


def ok(message: str) -> Finding:
    """The state is as it should be."""
    return Finding(CheckVerdict.OK, message)


def warning(message: str, fix: str) -> Finding:
    """The state can do harm, now or later."""
    return Finding(CheckVerdict.WARNING, message, fix)


def failure(message: str, fix: str) -> Finding:
    """A shutdown would not be graceful."""
    return Finding(CheckVerdict.FAILURE, message, fix)


def unknown(message: str, fix: str = "") -> Finding:
    """The state is unknown; the message gives the reason."""
    return Finding(CheckVerdict.UNKNOWN, message, fix)
