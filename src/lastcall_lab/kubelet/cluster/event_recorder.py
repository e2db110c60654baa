"""The kubelet's event recorder, which counts repeated events (``k8s.io/client-go/tools/record``)."""

import asyncio
import logging
from dataclasses import dataclass
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import EVENTS, Object, WrittenObject
from lastcall.errors import LastcallError, NotFound
from lastcall.ports.node import Clock
from lastcall_lab.apiserver.values.object_meta import timestamp

_WAITING = 500
"""The queue size while the API server is away; further events are dropped, as in the real recorder."""

_EVENTS = EVENTS.with_shape(WrittenObject)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PendingEvent:
    """One event. ``field_path`` names the part of the object that it concerns: ``spec.containers{web}``."""

    about: Object
    type: str
    reason: str
    message: str
    field_path: str = ""
    at: float = 0.0


class KubeletEventRecorder:
    """Queues events without waiting; ``run`` writes them one at a time."""

    def __init__(self, client: Client, clock: Clock, random: Random, *, host: str) -> None:
        self._client = client
        self._clock = clock
        self._random = random
        self._host = host
        self._waiting: asyncio.Queue[PendingEvent] = asyncio.Queue(maxsize=_WAITING)
        self._told: dict[tuple[str, ...], tuple[str, int]] = {}

    def record_event(self, about: Object, type_: str, reason: str, message: str, *, field_path: str = "") -> None:
        """Queues an event about a Node or a Pod. Never waits."""
        said = PendingEvent(about, type_, reason, message, field_path, self._clock.wall())
        try:
            self._waiting.put_nowait(said)
        except asyncio.QueueFull:
            log.warning("an event is dropped: %s %s", reason, message)

    async def run(self) -> None:
        """Runs until cancelled. Logs an event that cannot be written, and drops it."""
        while True:
            said = await self._waiting.get()
            try:
                await self._write_event(said)
            except LastcallError as error:
                log.warning("the event %s (%s) is lost: %s", said.reason, said.message, error)

    async def _write_event(self, said: PendingEvent) -> None:
        about = _object_reference(said)
        namespace = about.get("namespace") or "default"
        key = (about["uid"], said.type, said.reason, said.message, said.field_path)
        name, count = self._told.get(key, ("", 0))
        if name:
            try:
                patch = {"count": count + 1, "lastTimestamp": timestamp(said.at)}
                await self._client.patch(_EVENTS, name, patch, namespace=namespace)
            except NotFound:
                count = 0
        if not count:
            name = f"{about['name']}.{self._random.getrandbits(64):016x}"
            await self._client.create(_EVENTS, self._new_event(said, about, name, namespace), namespace=namespace)
        self._told[key] = (name, count + 1)

    def _new_event(self, said: PendingEvent, about: Object, name: str, namespace: str) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": about,
            "reason": said.reason,
            "message": said.message,
            "type": said.type,
            "source": {"component": "kubelet", "host": self._host},
            "reportingComponent": "kubelet",
            "reportingInstance": self._host,
            "firstTimestamp": timestamp(said.at),
            "lastTimestamp": timestamp(said.at),
            "count": 1,
        }


def _object_reference(said: PendingEvent) -> Object:
    """A kubelet refers to its Node with the name in place of the uid (``kubelet.go: nodeRef``)."""
    metadata = said.about["metadata"]
    if said.about.get("kind") == "Node":
        return {"kind": "Node", "name": metadata["name"], "uid": metadata["name"]}
    reference = {"apiVersion": "v1", "kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"]}
    where = {"fieldPath": said.field_path} if said.field_path else {}
    return {**reference, "uid": metadata["uid"], "resourceVersion": metadata.get("resourceVersion", ""), **where}
