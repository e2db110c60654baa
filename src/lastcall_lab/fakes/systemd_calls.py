"""What a logind of the lab asks of systemd, and how systemd answers: the same for the one in this process and the real one."""

from enum import Enum

from lastcall.model.base import Facts


class SystemdResponse(Enum):
    """How StartUnit for targets and questions about units are answered. FAIL is for the jobs of services too."""

    HANG = "a job is granted and never ends, as when a machine really goes down"
    FAIL = "jobs are refused"
    DONE = "a job is granted and ends soon"
    MASKED = "every unit is masked"


class SystemdCall(Facts, frozen=True):
    """A call that systemd1 got. ``at`` is CLOCK_BOOTTIME."""

    at: float
    member: str
    arguments: list[str | int]
