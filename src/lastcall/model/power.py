"""Whether a machine has power, as a fence device or a cloud says it."""

from enum import Enum


class Power(Enum):
    """What a fence device, or a cloud, says of a machine. What is on its way down is ON, since it can still write."""

    ON = "ON"
    OFF = "OFF"
    UNKNOWN = "UNKNOWN"
