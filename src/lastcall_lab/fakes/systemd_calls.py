"""The calls of a lab logind to systemd, and systemd's answers, for the fake and the private logind."""

from enum import Enum

from lastcall.model.base import Facts


class SystemdResponse(Enum):
    """How StartUnit for targets and queries about units are answered. FAIL applies to jobs of services, too."""

    HANG = "a job is granted and never ends, as when a machine really goes down"
    FAIL = "jobs are refused"
    DONE = "a job is granted and ends soon"
    MASKED = "every unit is masked"


class SystemdCall(Facts, frozen=True):
    """A call that systemd1 received. ``at`` is CLOCK_BOOTTIME."""

    at: float
    member: str
    arguments: list[str | int]
