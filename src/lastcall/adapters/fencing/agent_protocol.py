"""The input of a fence agent, and the meaning of its answer (pure).

The exit codes are those of ClusterLabs' ``fencing.py``. Code 2 means both "wrong arguments" and "is off", so it counts
only together with the line on standard output.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lastcall.adapters.fencing.redaction import redact_secrets
from lastcall.model.power import PowerState
from lastcall.ports.fences import FenceAnswer

_MOST_SAID = 300
_CODES = {
    1: "failed",
    2: "was given wrong parameters",
    3: "was not let in: user or password is wrong",
    4: "lost the connection",
    5: "got no answer in its own time",
    6: "saw no power in its own time",
    7: "saw the power on in its own time",
    8: "could not get the status",
    9: "could not get the status",
    10: "has no password",
    11: "lacks the right",
    126: "cannot be run",
    127: "is not there",
}
SLOW_CODES = {"on": 6, "off": 7}
"""The device has accepted the order, and the agent stopped waiting for its effect."""


@dataclass(frozen=True)
class AgentResult:
    """How a run of an agent ended; ``code`` is None if its time was over and it was killed."""

    code: int | None
    out: str = ""
    said: str = ""


def stdin_lines(action: str, parameters: Mapping[str, str]) -> bytes:
    """The text for the agent's standard input. A parameter is a line; agents strip blanks and one pair of quotes."""
    quoted = (f"{name}={_quote_value(value)}\n" for name, value in parameters.items())
    return f"action={action}\n{''.join(quoted)}".encode()


def power_answer(ended: AgentResult, secrets: Iterable[str]) -> FenceAnswer:
    """The power state: ON and OFF only if the exit code and the text agree."""
    reported = set(re.findall(r"^Status: (\w+)\s*$", ended.out, re.MULTILINE | re.IGNORECASE))
    words = {word.upper() for word in reported}
    if ended.code == 0 and words == {"ON"}:
        return FenceAnswer(power=PowerState.ON)
    if ended.code == 2 and words == {"OFF"}:
        return FenceAnswer(power=PowerState.OFF)
    if words:
        why = f"it said {' and '.join(sorted(words))}, and its exit code {ended.code} does not say so"
        return FenceAnswer(power=PowerState.UNKNOWN, why=redact_and_shorten(why, secrets))
    return FenceAnswer(power=PowerState.UNKNOWN, why=failure_reason(ended, secrets))


def failure_reason(ended: AgentResult, secrets: Iterable[str]) -> str:
    """Why the agent failed, without secrets."""
    if ended.code is None:
        return "it did not end in its time and was killed"
    meaning = _CODES.get(ended.code, "failed")
    said = _last_error(ended.said) or _last_error(ended.out)
    return redact_and_shorten(f"it {meaning} (exit code {ended.code}){': ' if said else ''}{said}", secrets)


def redact_and_shorten(text: str, secrets: Iterable[str]) -> str:
    """``redact_secrets``, and cut to size."""
    text = redact_secrets(text, secrets)
    return text if len(text) <= _MOST_SAID else f"{text[:_MOST_SAID]}..."


def _quote_value(value: str) -> str:
    """Quotes a value so that the agent reads it unchanged."""
    return f'"{value}"' if value != value.strip() or re.fullmatch('".*"', value) else value


def _last_error(text: str) -> str:
    """The last error in the text, without its date; else the last line."""
    known = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.partition("ERROR: ")[2] for line in known if "ERROR: " in line and "'-h' for usage" not in line]
    return (errors or known or [""])[-1]
