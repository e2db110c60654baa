"""The power state of a machine, as a fence device or a cloud reports it."""

from enum import Enum


class PowerState(Enum):
    """The power state that a fence device or a cloud reports. A machine on its way down is ON: it can still write."""

    ON = "ON"
    OFF = "OFF"
    UNKNOWN = "UNKNOWN"


class InstanceState(Enum):
    """A cloud's instance states; EC2's pending, shutting-down and stopping are RUNNING: the machine may still write."""

    RUNNING = "running"
    STOPPED = "stopped"
    TERMINATED = "terminated"
    NOT_FOUND = "not found"
    """The wrong region or account, an API that is not yet consistent, or a deleted instance: the cause is unknown."""
    UNKNOWN = "unknown"

    @property
    def power(self) -> PowerState:
        """The corresponding state of a fence device."""
        off = (InstanceState.STOPPED, InstanceState.TERMINATED)
        return PowerState.ON if self is InstanceState.RUNNING else PowerState.OFF if self in off else PowerState.UNKNOWN
