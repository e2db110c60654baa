"""Writes the status of each FencePolicy: whether it is in effect, and what keeps its lost nodes from being fenced."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from lastcall.aio import Signal, wait_first
from lastcall.errors import LastcallError
from lastcall.failover.controller.cluster_view import ClusterView
from lastcall.failover.controller.controller_ports import FailoverApi
from lastcall.failover.controller.storm_guard import StormGuard
from lastcall.failover.decisions.case import Case
from lastcall.failover.limits import policy_choice, storm_view
from lastcall.failover.limits.storms import LimitAnswer
from lastcall.failover.limits.tracked_node import TrackedNode
from lastcall.failover.reporting import held_back
from lastcall.failover.reporting.controller_events import FencingBlocked, Listener
from lastcall.failover.reporting.fencer_failures import PolicyFencers, fencers_by_policy
from lastcall.failover.reporting.held_back import HeldBack
from lastcall.ports.node import Clock

LOOK = 60.0
"""Seconds between two updates: the number of nodes changes without an event."""
PACE = 5.0
"""The same while nodes are in trouble; reports about them are refreshed no more often, whatever else changes."""
CALM = 0.5
"""Seconds in which several changes are combined."""

log = logging.getLogger(__name__)


class PolicyStatusWriter:
    """``run`` while this controller leads; ``changed`` is set when a policy changes or a node gets into trouble.

    ``troubled`` returns the nodes in trouble with the Case of their last decision; None: not decided yet.
    """

    def __init__(
        self,
        cluster: FailoverApi,
        observing: ClusterView,
        clock: Clock,
        guard: StormGuard,
        troubled: Callable[[], Mapping[str, Case | None]],
        tell: Listener,
    ) -> None:
        self._cluster = cluster
        self._observing = observing
        self._clock = clock
        self._guard = guard
        self._troubled = troubled
        self._tell = tell
        self._fencers: Mapping[str, PolicyFencers] = {}
        self._held: Mapping[str, HeldBack] = {}
        self._looked = float("-inf")
        self.changed = Signal()

    async def run(self) -> None:
        """Updates statuses; never ends. A failed write is repeated with the next update.

        So is an update that an internal error interrupted: otherwise the error would end failover as well.
        """
        while True:
            changed = self.changed.next()
            try:
                await self._write_statuses()
            except Exception:
                log.exception("the statuses of FencePolicies are not written, because of an internal error")
            await wait_first(changed, self._clock.sleep(PACE if self._troubled() else LOOK))
            await self._clock.sleep(CALM)

    def _refresh_reports(self, boottime: float, wall: float) -> None:
        troubled = self._troubled()
        self._fencers = fencers_by_policy(filter(None, troubled.values()), boottime, wall)
        self._held = self._find_held_back(troubled, boottime)
        self._looked = boottime

    def _find_held_back(self, troubled: Mapping[str, Case | None], now: float) -> Mapping[str, HeldBack]:
        """By policy.

        Only the limits that apply to all nodes are evaluated again, the others date from the nodes' decisions.
        """
        found: dict[str, HeldBack] = {}
        troubles: dict[str, LimitAnswer | None] = {}
        for name, case in troubled.items():
            knot = self._observing.tracked_nodes.get(name)
            if knot is None or knot.choice.policy is None:
                continue
            policy = knot.choice.policy
            if policy.name not in troubles:
                troubles[policy.name] = self._guard.view_trouble(policy, now)
            trouble = troubles[policy.name]
            if case:
                answer = held_back.standing_limit(case, now, trouble)
            else:
                answer = (
                    held_back.standing_limit_unread(trouble)
                    if knot.is_silent(now) and not _has_tainted_mark(knot)
                    else None
                )
            if answer:
                found.setdefault(policy.name, HeldBack()).add_node(name, answer)
            if trouble and trouble.limit and answer is trouble:
                self._tell(
                    FencingBlocked(
                        node=name,
                        uid=knot.node.metadata.uid,
                        limit=trouble.limit,
                        why=f"node {name} is not fenced: {trouble.why}",
                    )
                )
        return found

    async def _write_statuses(self) -> None:
        chosen = Counter(knot.choice.name for knot in self._observing.tracked_nodes.values())
        boottime, wall = self._clock.boottime(), self._clock.wall()
        if boottime >= self._looked + PACE:
            self._refresh_reports(boottime, wall)
        now = datetime.fromtimestamp(wall, UTC)
        found = self._observing.policy_objects
        for entry in policy_choice.ordered_entries(found.values()):
            fencers, held = self._fencers.get(entry.name, PolicyFencers()), self._held.get(entry.name, HeldBack())
            entries = held.status_entries(found[entry.name].get("status") or {}, boottime, wall)
            wanted = policy_choice.policy_status(
                found[entry.name],
                entry,
                nodes=chosen[entry.name],
                conditions=(fencers.working_condition, held.allowed_condition(entries)),
                told={"fencers": fencers.status_entries, "heldBack": entries},
                now=now,
            )
            if wanted is None:
                continue
            try:
                await self._cluster.write_policy_status(entry.name, wanted)
            except LastcallError as error:
                log.warning("the status of FencePolicy %s is not written: %s", entry.name, error)


def _has_tainted_mark(knot: TrackedNode) -> bool:
    """Whether its mark says that its boot is proved to be over, so that it does not wait to be fenced."""
    mark = storm_view.readable_mark(knot.node)
    return mark is not None and mark.tainted and mark.boot_id == knot.node.status.node_info.boot_id
