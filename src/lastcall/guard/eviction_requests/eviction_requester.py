"""Requests the evictions of pods by EvictionRequests, and withdraws them: for a drain."""

from lastcall.errors import AlreadyExists, NotFound
from lastcall.guard.eviction_requests.decisions.eviction_wishes import make_spec, name_request
from lastcall.model.eviction_requests import EvictionIntent, EvictionRequest
from lastcall.model.pods import ObjectMetadata
from lastcall.names import DRAIN_REQUESTER
from lastcall.ports.eviction_requests import EvictionRequests


class EvictionRequester:
    """One requester, such as ``acme.io/foo``. Errors are those of the API client; each call may be repeated.

    A pod is given by its name, namespace and uid.
    """

    def __init__(self, requests: EvictionRequests, name: str = DRAIN_REQUESTER) -> None:
        self._requests = requests
        self._name = name

    async def request(self, pod: ObjectMetadata) -> EvictionRequest:
        """Requests the pod's eviction, or requests it again after a withdrawal; returns the request as it is stored.

        Its conditions ``TargetEvicted`` and ``Failed`` say later what has become of it.
        """
        namespace, name = pod.namespace, name_request(self._name, pod.uid)
        try:
            await self._requests.create_request(namespace, name, make_spec(self._name, pod))
        except AlreadyExists:
            await self._change_intent(pod, EvictionIntent.EVICTION)
        found = await self._requests.find_request(namespace, name)
        if found is None:
            raise NotFound(f"EvictionRequest {namespace}/{name} was deleted by another client")
        return found

    async def withdraw(self, pod: ObjectMetadata) -> None:
        """Withdraws the request: responders undo what they have begun. Without effect if there is none."""
        await self._change_intent(pod, EvictionIntent.WITHDRAWN)

    async def forget(self, pod: ObjectMetadata) -> None:
        """Deletes the request, when its outcome was read. Before that, ``withdraw`` gives responders time."""
        if found := await self._find(pod):
            await self._requests.delete_request(found)

    async def _change_intent(self, pod: ObjectMetadata, intent: EvictionIntent) -> None:
        found = await self._find(pod)
        if found and found.spec.intent is not intent:
            await self._requests.set_intent(found, intent)

    async def _find(self, pod: ObjectMetadata) -> EvictionRequest | None:
        name = name_request(self._name, pod.uid)
        return await self._requests.find_request(pod.namespace, name)
