"""How many requests of clients are lost: computed from what the clients know and what the pods do, not sent one by one.

Clients outside the machines, as behind an ingress, make connections to each Service all the time, one for each
request. Which endpoints they know is learned as a node's proxy learns it: by a watch, under the weather, and
``propagation`` seconds after the API server. New connections go to the known endpoints in equal parts; those to an
endpoint whose pod does not serve fail, and all fail while no endpoint is known.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import Object
from lastcall.adapters.kube.watching import Change, Key, Kind
from lastcall.aio import Group
from lastcall.lab.identities import PROXY
from lastcall.lab.simulation.plane import Plane
from lastcall.lab.simulation.seeds import random_of
from lastcall.lab.simulation.spans import Between
from lastcall.lab.traffic.table import Table, service_of
from lastcall.model.traffic import split
from lastcall.ports import Clock

PROGRAM = "clients"
_SETTLE = 1.0
"""Seconds, beside the propagation, in which the first list has come."""


class Learned(NamedTuple):
    """At that time some endpoints of a Service have become known, others are known no longer; pods by their uids."""

    at: float
    came: tuple[str, ...]
    went: tuple[str, ...]


class Clients:
    """What they know of the named Services, and since when. ``begin`` first, then ``end``."""

    def __init__(self, plane: Plane, clock: Clock, seed: str, services: Iterable[Key], *, propagation: float) -> None:
        self._clock = clock
        self._group = Group()
        self._slices: dict[Key, dict[Key, _Slice]] = {key: {} for key in services}
        self._known: dict[Key, set[str]] = {key: set() for key in self._slices}
        self._propagation = propagation
        client = Client(plane.reach(PROXY, PROGRAM), manager=PROGRAM)
        random = random_of(seed, PROGRAM)
        self._table = Table(client, clock, random, delay=propagation, on_change=self._look)
        self.learned: dict[Key, list[Learned]] = {key: [] for key in self._known}
        """Of each Service, in order."""

    async def begin(self) -> None:
        """Returns when they know all that is there. Without Services they do not look."""
        if self._known:
            self._group.start(self._table.run(), PROGRAM)
            await self._clock.sleep(self._propagation + _SETTLE)

    async def end(self) -> None:
        """They learn nothing more."""
        await self._group.cancel()

    def _look(self, change: Change[Any]) -> None:
        """Only at the slice that has changed: a Service may have thousands of endpoints."""
        for service in dict.fromkeys(service_of(one) for one in (change.old, change.new) if one):
            if service and service in self._slices:
                self._slices[service].pop(change.key, None)
                if change.new and change.kind is not Kind.DELETED and service_of(change.new) == service:
                    self._slices[service][change.key] = _slice(change.new)
                self._compare(service)

    def _compare(self, key: Key) -> None:
        before, slices = self._known[key], self._slices[key].values()
        now = set[str]().union(*(one.ready for one in slices)) or set[str]().union(*(one.leaving for one in slices))
        if now != before:
            self._known[key] = now
            came, went = tuple(sorted(now - before)), tuple(sorted(before - now))
            self.learned[key].append(Learned(self._clock.boottime(), came, went))


class _Slice(NamedTuple):
    ready: frozenset[str]
    leaving: frozenset[str]


def _slice(found: Object) -> _Slice:
    ready, leaving = split(found, "")
    return _Slice(frozenset(one.uid for one in ready), frozenset(one.uid for one in leaving))


class Failing(NamedTuple):
    """From ``begin`` to ``end`` that ``part`` of new connections fails."""

    begin: float
    end: float
    part: float


def failing(learned: Sequence[Learned], serves: Mapping[str, Sequence[Between]], within: Between) -> list[Failing]:
    """When connections fail: ``serves`` tells of pods (by uid) when they do. Looked at whenever something changes."""
    known: set[str] = set()
    serving: set[str] = set()
    answering = 0
    found: list[Failing] = []
    before, part = within.begin, 1.0
    for change in _changes(learned, serves):
        if change.at > before:
            _add(found, Failing(before, min(change.at, within.end), part))
            before = change.at
        answering -= change.pod in known and change.pod in serving
        about = known if change.is_known else serving
        (about.add if change.now else about.discard)(change.pod)
        answering += change.pod in known and change.pod in serving
        part = (len(known) - answering) / len(known) if known else 1.0
    _add(found, Failing(before, within.end, part))
    return found


class _Change(NamedTuple):
    at: float
    pod: str
    is_known: bool
    """Whether it is about the pod's being known, and else about its serving."""
    now: bool
    """Whether it is so from now on."""


def _changes(learned: Sequence[Learned], serves: Mapping[str, Sequence[Between]]) -> Sequence[_Change]:
    found = []
    for one in learned:
        found += [_Change(one.at, uid, is_known=True, now=False) for uid in one.went]
        found += [_Change(one.at, uid, is_known=True, now=True) for uid in one.came]
    for uid in dict.fromkeys(uid for one in learned for uid in one.came):
        for span in serves.get(uid, ()):
            if span.begin < span.end:
                found.append(_Change(span.begin, uid, is_known=False, now=True))
                found.append(_Change(span.end, uid, is_known=False, now=False))
    return sorted(found, key=lambda change: change.at)


def _add(found: list[Failing], one: Failing) -> None:
    if one.part <= 0 or one.begin >= one.end:
        return
    if found and found[-1].end == one.begin and found[-1].part == one.part:
        found[-1] = Failing(found[-1].begin, one.end, one.part)
    else:
        found.append(one)
