"""What the guard does with EvictionRequests (``lifecycle.k8s.io``, KEP-4563)."""

from enum import Enum


class EvictionRequestMode(Enum):
    """How much of it the guard does."""

    OFF = "Off"
    RESPOND = "Respond"
    """It answers for the pods that it guards. Kubernetes, or another program, runs the requests."""
    CONTROL = "Control"
    """It runs the requests, too, and evicts pods itself: for clusters in which nothing else does."""
