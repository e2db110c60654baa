"""Asks for the evictions of a drain by EvictionRequests: requested, followed, and withdrawn for pods that stay."""

import logging

from lastcall.errors import LastcallError, TooManyRequests
from lastcall.guard.eviction_requests.decisions.eviction_wishes import name_request
from lastcall.guard.eviction_requests.decisions.request_answers import RequestAnswer, RequestVerdict, judge_request
from lastcall.guard.eviction_requests.eviction_requester import EvictionRequester
from lastcall.model.eviction_requests import EvictionRequest
from lastcall.model.pods import ObjectMetadata
from lastcall.names import DRAIN_REQUESTER
from lastcall.ports.drain import EvictionHeld, PodEvictions
from lastcall.ports.eviction_requests import EvictionObjects
from lastcall.ports.node import Clock

log = logging.getLogger(__name__)


class RequestedEvictions:
    """``ports.drain.PodEvictions``. ``direct`` asks the Eviction API, where no EvictionRequest can evict a pod.

    ``objects`` have to be followed meanwhile. An EvictionRequest has no grace period: that of a drain has no effect.
    """

    def __init__(
        self, requester: EvictionRequester, objects: EvictionObjects, direct: PodEvictions, clock: Clock
    ) -> None:
        self._requester, self._objects, self._direct, self._clock = requester, objects, direct, clock
        self._since: dict[str, float] = {}
        """When the eviction of a pod was requested first, by its uid."""
        self._is_heard = False
        """Whether anything in the cluster has acted on one of the requests."""

    async def evict_pod(self, namespace: str, name: str, *, uid: str, grace: int | None) -> None:
        """``PodEvictions.evict_pod``: returns when the pod is evicted; EvictionHeld while a responder has its turn."""
        pod = ObjectMetadata(name=name, namespace=namespace, uid=uid)
        request = self._find(pod)
        if request is None or not request.is_wanted:
            request = await self._requester.request(pod)
        self._since.setdefault(uid, self._clock.boottime())
        answer = self._judge(request)
        match answer.verdict:
            case RequestVerdict.EVICTED:
                return
            case RequestVerdict.ASK_API:
                log.info("pod %s/%s is evicted by the Eviction API: %s", namespace, name, answer.message)
                await self._direct.evict_pod(namespace, name, uid=uid, grace=grace)
            case RequestVerdict.WAIT:
                raise (EvictionHeld if answer.is_held else TooManyRequests)(answer.message)

    async def withdraw_eviction(self, namespace: str, name: str, *, uid: str) -> None:
        """``PodEvictions.withdraw_eviction``: responders undo what they have begun."""
        if uid not in self._since:
            return
        try:
            await self._requester.withdraw(ObjectMetadata(name=name, namespace=namespace, uid=uid))
        except LastcallError as error:
            log.warning("the EvictionRequest of pod %s/%s is not withdrawn: %s", namespace, name, error)

    def _find(self, pod: ObjectMetadata) -> EvictionRequest | None:
        """The request of this pod, as last heard of."""
        name = name_request(DRAIN_REQUESTER, pod.uid)
        mine = (one for one in self._objects.requests if one.metadata.namespace == pod.namespace)
        return next((one for one in mine if one.metadata.name == name), None)

    def _judge(self, request: EvictionRequest) -> RequestAnswer:
        self._is_heard = self._is_heard or bool(request.status.conditions)
        uid = request.spec.target.pod.uid if request.spec.target.pod else ""
        since = self._since.get(uid, 0.0) if self._is_heard else min(self._since.values())
        near = [one for one in self._objects.evictions if one.metadata.namespace == request.metadata.namespace]
        return judge_request(request, near, self._clock.boottime() - since)
