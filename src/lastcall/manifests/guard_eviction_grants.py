"""What the guard may do besides if it answers or runs EvictionRequests, each with its reason (pure)."""

from typing import Final

from lastcall.manifests.rbac import Grant
from lastcall.model.eviction_request_mode import EvictionRequestMode

_GROUP: Final = "lifecycle.k8s.io"
_FOLLOW: Final = ("list", "watch")


def eviction_request_grants(mode: EvictionRequestMode) -> list[Grant]:
    """None if it is switched off."""
    if mode is EvictionRequestMode.OFF:
        return []
    responder = [
        Grant("evictions", _FOLLOW, "the evictions of pods that it guards", _GROUP),
        Grant("evictions/status", ("patch",), "how far the application is", _GROUP),
    ]
    return [*responder, *_controller_grants()] if mode is EvictionRequestMode.CONTROL else responder


def _controller_grants() -> list[Grant]:
    return [
        Grant(
            "evictions", ("create", "get", "patch"), "one for each pod that is to go, with labels and owners", _GROUP
        ),
        Grant("evictionrequests", _FOLLOW, "who requests which eviction", _GROUP),
        Grant("evictionrequests/status", ("patch",), "what has become of it", _GROUP),
        Grant("pods/eviction", ("create",), "pods whose other responders are done; budgets and webhooks hold"),
    ]
