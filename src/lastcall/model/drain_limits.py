"""How long a drain may take, and what happens at the end of that time (pure)."""

from enum import Enum

from lastcall.model.base import Facts

FORCE_GRACE = 1
"""Seconds of grace of a forced deletion. With 0 the object would go at once, and a StatefulSet would start its pod
again while the old one runs; with 1 it goes after the kubelet has reported the end."""


class TimeoutPolicy(Enum):
    """What happens to pods that are left when the time is over. None of them passes a guard by."""

    STOP = "stop"
    """The drain gives up."""
    DELETE = "delete"
    """They are deleted with their grace period: no PodDisruptionBudget is asked, but webhooks are."""
    FORCE = "force"
    """They are deleted with a grace period of ``FORCE_GRACE``, also those that are ending already."""


class DrainLimits(Facts, frozen=True):
    """Times in seconds; 0 for no end."""

    timeout: float = 0.0
    """For the whole drain."""
    pod_timeout: float = 0.0
    """For each pod, from the first request for it."""
    on_timeout: TimeoutPolicy = TimeoutPolicy.STOP

    @property
    def has_end(self) -> bool:
        """Whether there is any end of the time."""
        return bool(self.timeout or self.pod_timeout)
