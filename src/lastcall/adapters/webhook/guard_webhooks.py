"""The guard's webhooks at the API server, for the controller that withdraws them."""

import hashlib
import logging
from datetime import UTC, datetime
from typing import Final

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import ENDPOINT_SLICES, EVENTS, VALIDATING_WEBHOOKS, Object, WrittenObject
from lastcall.errors import LastcallError, NotFound
from lastcall.model.base import Facts
from lastcall.model.guard_webhooks import NAME, forget_copy, put_back_webhooks, withdraw_webhooks
from lastcall.names import SYSTEM_NAMESPACE
from lastcall.ports.guard_webhooks import Configuration
from lastcall.ports.node import Clock

_SELECTOR: Final = f"kubernetes.io/service-name={NAME}"
_EVENTS = EVENTS.with_shape(WrittenObject)

log = logging.getLogger(__name__)


class _EndpointConditions(Facts, frozen=True):
    ready: bool | None = None


class _GuardEndpoint(Facts, frozen=True):
    conditions: _EndpointConditions | None = None


class _GuardSlice(Facts, frozen=True):
    endpoints: tuple[_GuardEndpoint, ...] | None = None


class KubeGuardWebhooks:
    """``ports.guard_webhooks.GuardWebhooks``. ``component`` and ``instance`` are the source of its Events.

    Needs get and update on the one configuration, list on endpointslices in the guard's namespace, and create on events.
    """

    def __init__(self, client: Client, clock: Clock, *, component: str, instance: str) -> None:
        self._client = client
        self._clock = clock
        self._component = component
        self._instance = instance

    async def read_configuration(self) -> Configuration | None:
        """``GuardWebhooks.read_configuration``."""
        try:
            return await self._client.get(VALIDATING_WEBHOOKS, NAME)
        except NotFound:
            return None

    async def has_ready_endpoint(self) -> bool:
        """``GuardWebhooks.has_ready_endpoint``. An endpoint that does not say counts as ready, as the API says."""
        slices = await self._client.list(
            ENDPOINT_SLICES.with_shape(_GuardSlice), namespace=SYSTEM_NAMESPACE, labels=_SELECTOR
        )
        return any(_is_ready(one) for found in slices.items for one in found.endpoints or ())

    async def withdraw(self, configuration: Configuration) -> None:
        """``GuardWebhooks.withdraw``."""
        await self._client.update(VALIDATING_WEBHOOKS, NAME, withdraw_webhooks(configuration))

    async def restore(self, configuration: Configuration) -> None:
        """``GuardWebhooks.restore``: two writes, since a write that changes fields cannot give them other owners."""
        stored = await self._client.update(VALIDATING_WEBHOOKS, NAME, put_back_webhooks(configuration))
        await self._client.update(VALIDATING_WEBHOOKS, NAME, forget_copy(stored))

    async def write_event(self, configuration: Configuration, reason: str, message: str, *, is_warning: bool) -> None:
        """``GuardWebhooks.write_event``: in ``default``, where Events about objects without a namespace are."""
        event = self._event(configuration["metadata"].get("uid", ""), reason, message, is_warning=is_warning)
        try:
            await self._client.create(_EVENTS, event, namespace="default")
        except LastcallError as error:
            log.warning("event %s (%s) is lost: %s", reason, message, error)

    def _event(self, uid: str, reason: str, message: str, *, is_warning: bool) -> Object:
        moment = datetime.fromtimestamp(self._clock.wall(), UTC)
        seconds = moment.isoformat(timespec="seconds").replace("+00:00", "Z")
        unique = hashlib.sha256(f"{uid} {reason} {moment.isoformat()}".encode()).hexdigest()[:16]
        kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{NAME}.{unique}", "namespace": "default"},
            "involvedObject": {**kind, "name": NAME, "uid": uid},
            "reason": reason,
            "message": message,
            "type": "Warning" if is_warning else "Normal",
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
            "firstTimestamp": seconds,
            "lastTimestamp": seconds,
            "count": 1,
        }


def _is_ready(endpoint: _GuardEndpoint) -> bool:
    return endpoint.conditions is None or endpoint.conditions.ready is not False
