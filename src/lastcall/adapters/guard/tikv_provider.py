"""The provider ``tikv``: the leaders of a store's regions are moved to other stores before its pod goes.

The Placement Driver does it as long as its evict-leader-scheduler has the store. The scheduler may get lost, and stays if
it is not removed; what PD counts is incomplete for minutes after it was started.
"""

import asyncio
from collections.abc import Iterator
from typing import Final

from lastcall.adapters.guard.http_exchange import AnswerTooLarge
from lastcall.adapters.guard.http_member import HttpMember, HttpMemberSettings
from lastcall.adapters.guard.leader_counts import LeaderCounts
from lastcall.adapters.guard.placement_driver import PlacementDriver
from lastcall.adapters.guard.provider_factory import ProviderFactory
from lastcall.adapters.guard.settings import Port
from lastcall.adapters.guard.tikv_state import (
    TikvStore,
    TikvView,
    count_voting,
    find_store,
    parse_count,
    parse_evictions,
    parse_stores,
)
from lastcall.model.selectors import LabelSelector, selector_violations
from lastcall.ports.guard import (
    GuardedMember,
    MemberHealth,
    NamespaceAccess,
    PreparationProgress,
    PreparationReport,
)

AT: Final = "spec.provider.tikv"
SCHEDULER: Final = "evict-leader-scheduler"
FEWEST_REPLICAS: Final = 3
"""With fewer a region has no quorum without one."""


class TikvSettings(HttpMemberSettings, frozen=True, kw_only=True):
    """``spec.provider.tikv``: how PD is reached. Three of its pods are asked at most, each for ``timeout_seconds``."""

    pd_selector: LabelSelector
    """Selects the pods of PD, in the namespace of the policy."""
    pd_port: Port = 2379

    def list_violations(self) -> Iterator[str]:
        """The same as of HTTP members; and not every pod is one of PD."""
        yield from super().list_violations()
        yield from selector_violations(self.pd_selector, "pdSelector")
        if not self.pd_selector.match_labels and not self.pd_selector.match_expressions:
            yield "pdSelector: {}: needs at least one requirement"


class TikvProviderFactory(ProviderFactory[TikvSettings]):
    """Makes providers ``tikv``, which share the leaders that they have counted."""

    def __init__(self) -> None:
        counts = LeaderCounts()
        super().__init__(TikvSettings, AT, lambda settings, access: TikvProvider(settings, access, counts))


class TikvProvider:
    """``ports.guard.GuardProvider``."""

    is_reversible = True

    def __init__(self, settings: TikvSettings, access: NamespaceAccess, counts: LeaderCounts) -> None:
        self._settings = settings
        self._access = access
        self._counts = counts

    async def check_health(self, member: GuardedMember) -> MemberHealth:
        """Whether all other stores are up, no other one is being emptied of leaders, and every region has its peers.

        The store of a member that is there may be down; of one that is gone it has to be up again.
        """
        driver = self._make_driver()
        view = await _read_view(driver)
        own = await _find_own(driver, view, member)
        if own is not None and own.is_removed:
            return MemberHealth(is_healthy=True)
        is_there = bool(member.pod.status.pod_ip)
        faults = [] if own or not is_there else [_describe_unknown(member)]
        faults += view.list_absent(own if is_there else None)
        faults += view.list_evictions(own)
        replicas = (await driver.read("/config/replicate")).get("max-replicas")
        if isinstance(replicas, int) and replicas < FEWEST_REPLICAS:
            faults.append(f"regions have {replicas} replicas: without one there is no quorum")
        faults += await _list_region_faults(driver, own if is_there else None)
        return MemberHealth(is_healthy=not faults, message="; ".join(faults))

    async def prepare(self, member: GuardedMember) -> None:
        """Has PD move the leaders away from the store, and keep them away."""
        driver = self._make_driver()
        view = await _read_view(driver)
        own = await _find_own(driver, view, member)
        if own is None or own.is_removed or own.id in view.evicted:
            return  # check_progress says why
        await driver.add_scheduler(SCHEDULER, own.id)

    async def check_progress(self, member: GuardedMember) -> PreparationReport:
        """READY if the store has no leaders, PD knows those of all regions, and a quorum of each remains without it."""
        driver = self._make_driver()
        view = await _read_view(driver)
        own = await _find_own(driver, view, member)
        if own is None:
            return _report(PreparationProgress.STALLED, _describe_unknown(member))
        if own.is_removed:
            return _report(PreparationProgress.READY, f"store {own.id} is removed")
        if own.id not in view.evicted:
            text = f"store {own.id} has {own.leaders} leaders, and PD does not move them away"
            return _report(PreparationProgress.LOST, text)
        if absent := list(view.list_absent(own)):
            return _report(PreparationProgress.STALLED, "; ".join(absent))
        faults = list(_list_leader_faults(view, own)) or await _list_region_faults(driver, own)
        return self._report_move(view, own, member.pod.metadata.uid, faults)

    async def cancel(self, member: GuardedMember) -> None:
        """PD may give the store leaders again."""
        await self._end_eviction(member)

    async def release(self, member: GuardedMember) -> None:
        """The same, if PD knows the store still."""
        await self._end_eviction(member)

    # -- within --------------------------------------------------------------------------------------------------------

    def _make_driver(self) -> PlacementDriver:
        http = HttpMember(self._settings, self._settings.pd_port, self._access)
        return PlacementDriver(http, self._access, self._settings.pd_selector)

    def _report_move(self, view: TikvView, own: TikvStore, uid: str, faults: list[str]) -> PreparationReport:
        move = self._counts.observe(uid, own.leaders + view.unknown_leaders, asyncio.get_running_loop().time())
        if not faults:
            return _report(PreparationProgress.READY, f"store {own.id} has no leaders")
        progress = PreparationProgress.STALLED if move.is_stalled else PreparationProgress.PREPARING
        return PreparationReport(
            progress=progress, percent=move.percent, eta_seconds=move.eta_seconds, message="; ".join(faults)
        )

    async def _end_eviction(self, member: GuardedMember) -> None:
        driver = self._make_driver()
        view = await _read_view(driver)
        own = await _find_own(driver, view, member)
        if own is not None and own.id in view.evicted:
            await driver.remove_scheduler(SCHEDULER, own.id)
        self._counts.forget(member.pod.metadata.uid)


async def _read_view(driver: PlacementDriver) -> TikvView:
    """Regions are counted before their leaders are: what is split meanwhile is no leader that PD does not know."""
    regions = parse_count(await driver.read("/regions/count"))
    stores, evicted = await asyncio.gather(
        driver.read("/stores"), driver.read(f"/scheduler-config/{SCHEDULER}/list", if_missing={})
    )
    return TikvView(stores=parse_stores(stores), evicted=parse_evictions(evicted), regions=regions)


async def _find_own(driver: PlacementDriver, view: TikvView, member: GuardedMember) -> TikvStore | None:
    """The member's store; one that was removed is listed if it is asked for (state 2)."""
    found = find_store(view.stores, member)
    return found or find_store(parse_stores(await driver.read("/stores?state=2")), member)


async def _list_region_faults(driver: PlacementDriver, own: TikvStore | None) -> list[str]:
    """What a quorum of a region may lack without the store."""
    missing, down, pending = await asyncio.gather(
        *(_count_regions(driver, one, own) for one in ("miss-peer", "down-peer", "pending-peer"))
    )
    texts = (
        (missing, "have too few peers"),
        (down, "have a peer that is down"),
        (pending, "have a peer that is behind"),
    )
    return [f"{count} regions {text}" for count, text in texts if count]


async def _count_regions(driver: PlacementDriver, kind: str, own: TikvStore | None) -> int | str:
    try:
        value = await driver.read(f"/regions/check/{kind}")
    except AnswerTooLarge:
        return "many"
    if kind == "miss-peer":
        return parse_count(value)
    return count_voting(value, f"{kind.replace('-', '_')}s", own)


def _list_leader_faults(view: TikvView, own: TikvStore) -> Iterator[str]:
    if own.leaders:
        yield f"store {own.id} has {own.leaders} leaders"
    if view.unknown_leaders:
        yield f"PD does not know the leaders of {view.unknown_leaders} of {view.regions} regions"


def _describe_unknown(member: GuardedMember) -> str:
    return f"PD has no store with the address of {member.pod.metadata.name}"


def _report(progress: PreparationProgress, message: str) -> PreparationReport:
    return PreparationReport(progress=progress, message=message)
