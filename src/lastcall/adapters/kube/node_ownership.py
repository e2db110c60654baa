"""``ports.drain.NodeOwnership``: a Lease for each node in lastcall-drains, and medik8s' own where that exists."""

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.refusals import explain_refusal
from lastcall.adapters.kube.resources import LEASES, NAMESPACES, WrittenObject
from lastcall.aio import timeout
from lastcall.errors import AlreadyExists, ApiNotPermitted, Conflict, LastcallError, NotFound
from lastcall.model.node_ownership import (
    LEASE_SECONDS,
    MEDIK8S_LEASES,
    RENEW_SECONDS,
    LeaseStanding,
    NodeLease,
    OwnershipClaim,
    claim_object,
    judge_lease,
    lease_name,
)
from lastcall.names import DRAINS_NAMESPACE, OWNER_REASON
from lastcall.ports.drain import NodeOwner, OwnershipTaken
from lastcall.ports.node import Clock

log = logging.getLogger(__name__)

_LEASES = LEASES.with_shape(NodeLease)
_NAMESPACES = NAMESPACES.with_shape(WrittenObject)
_LOOK_SECONDS = 1.0
"""Seconds between two looks at a Lease whose holder may be dead."""


class _Place(NamedTuple):
    node: str
    namespace: str


class KubeNodeOwnership:
    """Needs get, create, update and delete on Leases in both namespaces, and get on these. ``uids`` are the Nodes'.

    With ``ignores_others`` medik8s' Leases are neither asked nor taken.
    """

    def __init__(
        self,
        client: Client,
        claim: OwnershipClaim,
        uids: Mapping[str, str],
        clock: Clock,
        *,
        ignores_others: bool = False,
    ) -> None:
        self._client, self._claim, self._uids, self._clock = client, claim, uids, clock
        self._namespaces = (DRAINS_NAMESPACE,) if ignores_others else (DRAINS_NAMESPACE, MEDIK8S_LEASES)
        self._held: dict[_Place, NodeLease] = {}
        self._spent: dict[str, float] = {}
        self._wanted: Sequence[_Place] = ()
        self._looks: dict[_Place, tuple[NodeLease, float]] = {}
        """Leases as they were first read, and when: those of a run that has died expire together."""
        self._renewed = 0.0
        self._writing = asyncio.Lock()
        """Renewals and releases of one Lease do not meet."""

    async def take(self, nodes: Iterable[str]) -> OwnershipTaken | NodeOwner:
        """``NodeOwnership.take``."""
        namespaces, warnings = await self._find_namespaces()
        self._looks.clear()
        self._wanted = [_Place(node, namespace) for node in sorted(nodes) for namespace in namespaces]
        try:
            for node in sorted(nodes):
                for namespace in tuple(namespaces):
                    try:
                        owner = await self._take_one(_Place(node, namespace))
                    except (ApiNotPermitted, NotFound) as error:
                        namespaces.remove(namespace)
                        warnings.append(_missing_text(namespace, error))
                        continue
                    if owner is not None:
                        await self.release()
                        return owner
        except (LastcallError, asyncio.CancelledError):
            await self.release()
            raise
        self._renewed = self._clock.boottime()
        return OwnershipTaken(spent=dict(self._spent), warnings=warnings)

    @property
    def is_sure(self) -> bool:
        """``NodeOwnership.is_sure``."""
        return not self._held or self._clock.boottime() < self._renewed + LEASE_SECONDS - RENEW_SECONDS

    async def keep(self) -> NodeOwner:
        """``NodeOwnership.keep``."""
        while True:
            await self._clock.sleep(RENEW_SECONDS)
            begun = self._clock.boottime()
            try:
                for place in sorted(self._held):
                    owner = await self._renew(place)
                    if owner is not None:
                        return owner
            except (LastcallError, TimeoutError) as error:
                if isinstance(error, ApiNotPermitted) and not self.is_sure:
                    raise
                log.warning("the Leases of the nodes are not renewed: %s", str(error) or "no answer")
            else:
                self._renewed = begun

    async def release(self, nodes: Iterable[str] | None = None) -> None:
        """``NodeOwnership.release``. A renewal that is under way does not make the Lease again."""
        chosen = None if nodes is None else frozenset(nodes)
        async with self._writing:
            for place in sorted(one for one in self._held if chosen is None or one.node in chosen):
                lease = self._held.pop(place)
                try:
                    async with timeout(RENEW_SECONDS / 2):
                        await self._delete(place, lease)
                except (LastcallError, TimeoutError) as error:
                    log.warning("Lease %s/%s has to expire: %s", place.namespace, lease_name(place.node), error)

    async def _delete(self, place: _Place, lease: NodeLease) -> None:
        name, namespace = lease_name(place.node), place.namespace
        for _ in range(2):
            revision = lease.metadata.resource_version
            try:
                await self._client.delete(LEASES, name, namespace=namespace, revision=revision)
            except NotFound:
                return
            except Conflict:  # a renewal was under way
                found = await self._read(place)
                if found is None or found.holder != self._claim.holder:
                    return
                lease = found
            else:
                return

    async def _find_namespaces(self) -> tuple[list[str], list[str]]:
        """The namespaces that exist; a cluster without lastcall's records no ownership.

        Who may not ask for namespaces may still have rights to Leases in lastcall's.
        """
        found, warnings = [], []
        for name in self._namespaces:
            try:
                await self._client.get(_NAMESPACES, name)
                found.append(name)
            except NotFound as error:
                if name == DRAINS_NAMESPACE:
                    warnings.append(_missing_text(name, error))
            except ApiNotPermitted:
                found += [name] if name == DRAINS_NAMESPACE else []
        return found, warnings

    async def _take_one(self, place: _Place) -> NodeOwner | None:
        """Takes one Lease; returns the owner who is alive."""
        first: NodeLease | None
        first, since = self._looks.get(place, (None, self._clock.boottime()))
        while True:
            now = await self._read(place)
            if first is None or (now is None or now.metadata.uid != first.metadata.uid):
                first, since = now, self._clock.boottime()
            waited = self._clock.boottime() - since
            standing = LeaseStanding.FREE if first is None else judge_lease(first, now, self._claim, waited=waited)
            if standing is LeaseStanding.HELD:
                assert now is not None
                return _owner(place, now)
            if standing is LeaseStanding.UNCLEAR and now is not None and now is first:
                log.warning(
                    "node %s belongs to %s: waiting up to %.0f s, to see whether Lease %s/%s is renewed",
                    place.node,
                    now.holder,
                    now.duration,
                    place.namespace,
                    lease_name(place.node),
                )
                await self._look_ahead()
            if standing is not LeaseStanding.UNCLEAR and await self._write(place, now):
                if standing is LeaseStanding.EXPIRED and now is not None:
                    self._spent[place.node] = max(self._spent.get(place.node, 0.0), now.held_seconds)
                return None
            await self._clock.sleep(_LOOK_SECONDS)

    async def _look_ahead(self) -> None:
        """Reads the Leases that are still to be taken: while one after the other is waited for, the first would expire."""
        for place in self._wanted:
            if place not in self._held and place not in self._looks:
                with contextlib.suppress(LastcallError):
                    if (lease := await self._read(place)) is not None:
                        self._looks[place] = (lease, self._clock.boottime())

    async def _renew(self, place: _Place) -> NodeOwner | None:
        """Renews one Lease; returns who has it instead. One that somebody has deleted is made again."""
        async with self._writing, timeout(RENEW_SECONDS / 2):
            if place not in self._held or await self._write(place, self._held[place]):
                return None
            now = await self._read(place)
            if now is None or now.holder == self._claim.holder:
                await self._write(place, now)
                return None
            return _owner(place, now)

    async def _write(self, place: _Place, before: NodeLease | None) -> bool:
        """Whether the Lease is ours now; False if it has changed since it was read. NotFound: there is no namespace."""
        node, namespace = place
        wanted = claim_object(node, self._claim, before, node_uid=self._uids[node], wall=self._clock.wall())
        try:
            if before is None:
                self._held[place] = await self._client.create(_LEASES, wanted, namespace=namespace)
            else:
                self._held[place] = await self._client.update(_LEASES, lease_name(node), wanted, namespace=namespace)
        except (Conflict, AlreadyExists):
            return False
        except NotFound:
            if before is None:
                raise
            return False
        return True

    async def _read(self, place: _Place) -> NodeLease | None:
        try:
            return await self._client.get(_LEASES, lease_name(place.node), namespace=place.namespace)
        except NotFound:
            return None


def _missing_text(namespace: str, error: LastcallError) -> str:
    said = str(error)
    if isinstance(error, NotFound):
        said = f"{error}; mend: kubectl create namespace {namespace}"
    elif isinstance(error, ApiNotPermitted):
        said = explain_refusal(error, drains=True)
    return f"nothing keeps two drains of one node apart by Leases in {namespace}: {said}"


def _owner(place: _Place, lease: NodeLease) -> NodeOwner:
    acquired = lease.spec.acquire_time
    return NodeOwner(
        node=place.node,
        lease=f"{place.namespace}/{lease_name(place.node)}",
        holder=lease.holder,
        reason=(lease.metadata.annotations or {}).get(OWNER_REASON, ""),
        since=acquired.isoformat(timespec="seconds").replace("+00:00", "Z") if acquired else "",
    )
