"""Lost client requests, computed from the clients' view of endpoints and the pods' state instead of sent one by one.

Clients outside the machines, as behind an ingress, make connections to each Service all the time, one for each
request. Which endpoints they know is learned as a node's proxy learns it: by a watch, under the weather, and
``propagation`` seconds after the API server. New connections go to the known endpoints in equal parts; those to an
endpoint whose pod does not serve fail, and all fail while no endpoint is known.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.informer import ChangeKind, ObjectKey, WatchChange
from lastcall.adapters.kube.resources import Object
from lastcall.aio import OrderedTaskGroup
from lastcall.model.traffic import split_endpoints
from lastcall.ports.node import Clock
from lastcall_lab.control_plane.identities import PROXY
from lastcall_lab.simulation.control_plane import SimulatedControlPlane
from lastcall_lab.simulation.seeds import random_of
from lastcall_lab.simulation.time_spans import TimeSpan
from lastcall_lab.traffic.endpoint_table import EndpointTable, service_of

PROGRAM = "clients"
_SETTLE = 1.0
"""Seconds, beside the propagation, in which the first list has come."""


class EndpointUpdate(NamedTuple):
    """At that time some endpoints of a Service have become known, others are known no longer; pods by their uids."""

    at: float
    came: tuple[str, ...]
    went: tuple[str, ...]


class ServiceClients:
    """What they know of the named Services, and since when. ``start`` first, then ``stop``."""

    def __init__(
        self,
        plane: SimulatedControlPlane,
        clock: Clock,
        seed: str,
        services: Iterable[ObjectKey],
        *,
        propagation: float,
    ) -> None:
        self._clock = clock
        self._group = OrderedTaskGroup()
        self._slices: dict[ObjectKey, dict[ObjectKey, _EndpointSlice]] = {key: {} for key in services}
        self._known: dict[ObjectKey, set[str]] = {key: set() for key in self._slices}
        self._propagation = propagation
        client = Client(plane.transport_for(PROXY, PROGRAM), manager=PROGRAM)
        random = random_of(seed, PROGRAM)
        self._table = EndpointTable(client, clock, random, delay=propagation, on_change=self._read_slice)
        self.learned: dict[ObjectKey, list[EndpointUpdate]] = {key: [] for key in self._known}
        """Of each Service, in order."""

    async def start(self) -> None:
        """Returns when they know all that is there. Without Services they do not look."""
        if self._known:
            self._group.start(self._table.run(), PROGRAM)
            await self._clock.sleep(self._propagation + _SETTLE)

    async def stop(self) -> None:
        """They learn nothing more."""
        await self._group.cancel()

    def _read_slice(self, change: WatchChange[Any]) -> None:
        """Only at the slice that has changed: a Service may have thousands of endpoints."""
        for service in dict.fromkeys(service_of(one) for one in (change.old, change.new) if one):
            if service and service in self._slices:
                self._slices[service].pop(change.key, None)
                if change.new and change.kind is not ChangeKind.DELETED and service_of(change.new) == service:
                    self._slices[service][change.key] = _endpoint_slice(change.new)
                self._compare_endpoints(service)

    def _compare_endpoints(self, key: ObjectKey) -> None:
        before, slices = self._known[key], self._slices[key].values()
        now = set[str]().union(*(one.ready for one in slices)) or set[str]().union(*(one.leaving for one in slices))
        if now != before:
            self._known[key] = now
            came, went = tuple(sorted(now - before)), tuple(sorted(before - now))
            self.learned[key].append(EndpointUpdate(self._clock.boottime(), came, went))


class _EndpointSlice(NamedTuple):
    ready: frozenset[str]
    leaving: frozenset[str]


def _endpoint_slice(found: Object) -> _EndpointSlice:
    ready, leaving = split_endpoints(found, "")
    return _EndpointSlice(frozenset(one.uid for one in ready), frozenset(one.uid for one in leaving))


class FailureSpan(NamedTuple):
    """From ``start`` to ``stop`` that ``part`` of new connections fails."""

    begin: float
    end: float
    part: float


def failure_spans(
    learned: Sequence[EndpointUpdate], serves: Mapping[str, Sequence[TimeSpan]], within: TimeSpan
) -> list[FailureSpan]:
    """When connections fail: ``serves`` tells of pods (by uid) when they do. Looked at whenever something changes."""
    known: set[str] = set()
    serving: set[str] = set()
    answering = 0
    found: list[FailureSpan] = []
    before, part = within.begin, 1.0
    for change in _serving_changes(learned, serves):
        if change.at > before:
            _append_failure(found, FailureSpan(before, min(change.at, within.end), part))
            before = change.at
        answering -= change.pod in known and change.pod in serving
        about = known if change.is_known else serving
        (about.add if change.now else about.discard)(change.pod)
        answering += change.pod in known and change.pod in serving
        part = (len(known) - answering) / len(known) if known else 1.0
    _append_failure(found, FailureSpan(before, within.end, part))
    return found


class _ServingChange(NamedTuple):
    at: float
    pod: str
    is_known: bool
    """Whether it is about the pod's being known, and else about its serving."""
    now: bool
    """Whether it is so from now on."""


def _serving_changes(
    learned: Sequence[EndpointUpdate], serves: Mapping[str, Sequence[TimeSpan]]
) -> Sequence[_ServingChange]:
    found = []
    for one in learned:
        found += [_ServingChange(one.at, uid, is_known=True, now=False) for uid in one.went]
        found += [_ServingChange(one.at, uid, is_known=True, now=True) for uid in one.came]
    for uid in dict.fromkeys(uid for one in learned for uid in one.came):
        for span in serves.get(uid, ()):
            if span.begin < span.end:
                found.append(_ServingChange(span.begin, uid, is_known=False, now=True))
                found.append(_ServingChange(span.end, uid, is_known=False, now=False))
    return sorted(found, key=lambda change: change.at)


def _append_failure(found: list[FailureSpan], one: FailureSpan) -> None:
    if one.part <= 0 or one.begin >= one.end:
        return
    if found and found[-1].end == one.begin and found[-1].part == one.part:
        found[-1] = FailureSpan(found[-1].begin, one.end, one.part)
    else:
        found.append(one)
