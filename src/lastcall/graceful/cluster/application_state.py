"""Follows what the guard says of a pod's application, by the pod's condition."""

from collections.abc import Callable
from datetime import datetime

from lastcall.model.pods import Pod, StatusCondition
from lastcall.names import GUARD_READY
from lastcall.ports.node import ApplicationReadiness, Clock

LOOK_SECONDS = 0.1
"""Seconds between two looks at the pod, as the watch of the node's pods has it."""

FRESH_SECONDS = 15.0
"""Seconds for which a verification counts: the guard verifies every two, and records it every four."""


class ApplicationState:
    """The applications of this node's pods. ``find_pod`` returns what is known of the pod with a uid."""

    def __init__(self, find_pod: Callable[[str], Pod | None], clock: Clock) -> None:
        self._find_pod = find_pod
        self._clock = clock

    async def wait_until_ready(self, uid: str, until: Callable[[], float]) -> ApplicationReadiness | None:
        """``ports.node.NodeFace.wait_until_prepared``.

        A readiness counts if it was verified a moment ago, or is verified anew during the wait: a guard that died may
        have left it, and the clocks of two machines may differ.
        """
        found = find_guard_condition(self._find_pod(uid))
        first = found.last_probe_time if found else None
        while found:
            is_verified = found.last_probe_time != first or self._is_fresh(found)
            if found.status == "True" and is_verified:
                return ApplicationReadiness(is_ready=True, message=found.message)
            left = until() - self._clock.boottime()
            if left <= 0:
                return ApplicationReadiness(is_ready=False, message=found.message or found.reason)
            await self._clock.sleep(min(LOOK_SECONDS, left))
            found = find_guard_condition(self._find_pod(uid))
        return None

    def _is_fresh(self, condition: StatusCondition) -> bool:
        if condition.last_probe_time is None:
            return False
        try:
            probed = datetime.fromisoformat(condition.last_probe_time)
        except ValueError:
            return False
        return abs(self._clock.wall() - probed.timestamp()) <= FRESH_SECONDS


def find_guard_condition(pod: Pod | None) -> StatusCondition | None:
    """The guard's condition; None if the pod has none, so that nothing guards it."""
    conditions = (pod.status.conditions if pod else None) or ()
    return next((one for one in conditions if one.type == GUARD_READY), None)
