"""Whether a machine has power, as a fence device or a cloud says it."""

from enum import Enum


class PowerState(Enum):
    """What a fence device, or a cloud, says of a machine. What is on its way down is ON, since it can still write."""

    ON = "ON"
    OFF = "OFF"
    UNKNOWN = "UNKNOWN"


class InstanceState(Enum):
    """States of a machine in a cloud; EC2's pending, shutting-down and stopping are RUNNING here: it may still write."""

    RUNNING = "running"
    STOPPED = "stopped"
    TERMINATED = "terminated"
    NOT_FOUND = "not found"
    """The wrong region or account, an API that is not consistent yet, or gone: nobody knows which."""
    UNKNOWN = "unknown"

    @property
    def power(self) -> PowerState:
        """As a fence device would say it."""
        off = (InstanceState.STOPPED, InstanceState.TERMINATED)
        return PowerState.ON if self is InstanceState.RUNNING else PowerState.OFF if self in off else PowerState.UNKNOWN
