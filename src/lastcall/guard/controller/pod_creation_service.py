"""Answers AdmissionReviews about new pods: prepares them for their end, within a bounded time."""

import logging
from typing import Any

from lastcall.aio import timeout
from lastcall.errors import LastcallError
from lastcall.guard.decisions.pod_settling import (
    add_annotations,
    add_sleep,
    declares_service,
    is_mirror,
    is_served_undeclared,
    may_get_sleep,
    settle_seconds,
)
from lastcall.model.admission import answer_review
from lastcall.model.pod_creation import parse_pod_creation
from lastcall.model.pods import Pod
from lastcall.ports.guard_cluster import PodSurroundings

ANSWER_SECONDS = 1.0
"""Reading takes no longer: then the pod is created without the sleep."""

log = logging.getLogger(__name__)


class PodCreationService:
    """Never refuses a pod.

    ``default``: the seconds of the sleep where neither namespace nor pod gives a number. ``limit``: the seconds of reading.
    """

    def __init__(self, surroundings: PodSurroundings, *, default: int, limit: float = ANSWER_SECONDS) -> None:
        self._surroundings = surroundings
        self._default = default
        self._limit = limit

    async def answer(self, data: bytes, *, is_authenticated: bool = True) -> dict[str, Any]:
        """The AdmissionReview that answers the one in ``data``. InvalidInput if that is none.

        For a request that does not come from the API server nothing is read, and nothing is told.
        """
        creation = parse_pod_creation(data, "AdmissionReview")
        pod = creation.pod
        if pod is None or not is_authenticated or is_mirror(pod):
            return answer_review(creation.review, allowed=True)
        seconds = await self._find_seconds(creation.namespace, pod)
        patch = [*add_annotations(pod, seconds), *(add_sleep(pod, seconds) if seconds else [])]
        return answer_review(creation.review, allowed=True, patch=patch)

    async def _find_seconds(self, namespace: str, pod: Pod) -> int:
        """The seconds of the pod's sleep; 0 for none, also if the cluster does not answer in time."""
        if not may_get_sleep(pod):
            return 0
        try:
            async with timeout(self._limit):
                return await self._read_seconds(namespace, pod)
        except TimeoutError:
            log.warning("a pod of %s has no sleep: the API server did not answer in %g s", namespace, self._limit)
        except LastcallError as error:
            log.warning("a pod of %s has no sleep: %s", namespace, error)
        return 0

    async def _read_seconds(self, namespace: str, pod: Pod) -> int:
        label = await self._surroundings.read_settle_label(namespace)
        seconds = 0 if label is None else settle_seconds(pod, label, self._default)
        return seconds if seconds and (declares_service(pod) or await self._is_served(namespace, pod)) else 0

    async def _is_served(self, namespace: str, pod: Pod) -> bool:
        """What is remembered may lack a Service that was created just before the pod, so a "no" is read anew."""
        if not pod.metadata.labels:
            return False
        if is_served_undeclared(pod, await self._surroundings.read_services(namespace, fresh=False)):
            return True
        return is_served_undeclared(pod, await self._surroundings.read_services(namespace, fresh=True))
