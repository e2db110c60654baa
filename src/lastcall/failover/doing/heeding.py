"""Tells in the status of each FencePolicy whether it is heeded, and what keeps its lost nodes from being fenced."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from lastcall.aio import Signal, first
from lastcall.errors import LastcallError
from lastcall.failover.deciding.case import Case
from lastcall.failover.doing.guard import Guard
from lastcall.failover.doing.observing import Observing
from lastcall.failover.doing.outside import Cluster
from lastcall.failover.limits import overview, policies
from lastcall.failover.limits.knot import Knot
from lastcall.failover.limits.storms import Answer
from lastcall.failover.telling import held_back
from lastcall.failover.telling.fencer_failures import Fencers, by_policy
from lastcall.failover.telling.happenings import Blocked, Listener
from lastcall.failover.telling.held_back import HeldBack
from lastcall.ports import Clock

LOOK = 60.0
"""Seconds between two looks: how many nodes there are changes by itself."""
PACE = 5.0
"""The same while nodes are in trouble; what is told of them is renewed no more often, whatever else changes."""
CALM = 0.5
"""Seconds in which several changes are told as one."""

log = logging.getLogger(__name__)


class Heeding:
    """``run`` while this controller leads; ``changed`` is set when a policy is another, or a node comes to be in trouble.

    ``troubled`` are the nodes in trouble, each as it was last decided about; None: it was not decided about yet.
    """

    def __init__(
        self,
        cluster: Cluster,
        observing: Observing,
        clock: Clock,
        guard: Guard,
        troubled: Callable[[], Mapping[str, Case | None]],
        tell: Listener,
    ) -> None:
        self._cluster = cluster
        self._observing = observing
        self._clock = clock
        self._guard = guard
        self._troubled = troubled
        self._tell = tell
        self._fencers: Mapping[str, Fencers] = {}
        self._held: Mapping[str, HeldBack] = {}
        self._looked = float("-inf")
        self.changed = Signal()

    async def run(self) -> None:
        """Never ends. What cannot be written is tried again at the next look.

        So is what a mistake of ours has stopped: failover would end with it.
        """
        while True:
            changed = self.changed.next()
            try:
                await self._write()
            except Exception:
                log.exception("the statuses of FencePolicies are not written, by a mistake of this program")
            await first(changed, self._clock.sleep(PACE if self._troubled() else LOOK))
            await self._clock.sleep(CALM)

    def _look(self, boottime: float, wall: float) -> None:
        troubled = self._troubled()
        self._fencers = by_policy(filter(None, troubled.values()), boottime, wall)
        self._held = self._held_back(troubled, boottime)
        self._looked = boottime

    def _held_back(self, troubled: Mapping[str, Case | None], now: float) -> Mapping[str, HeldBack]:
        """By policy; only what stands against all nodes is asked for anew, each limit was when a node was decided about."""
        found: dict[str, HeldBack] = {}
        troubles: dict[str, Answer | None] = {}
        for name, case in troubled.items():
            knot = self._observing.knots.get(name)
            if knot is None or knot.choice.policy is None:
                continue
            policy = knot.choice.policy
            if policy.name not in troubles:
                troubles[policy.name] = self._guard.view_trouble(policy, now)
            trouble = troubles[policy.name]
            if case:
                answer = held_back.standing(case, now, trouble)
            else:
                answer = held_back.standing_unread(trouble) if knot.silent(now) and not _tainted(knot) else None
            if answer:
                found.setdefault(policy.name, HeldBack()).add(name, answer)
            if trouble and trouble.limit and answer is trouble:
                self._tell(
                    Blocked(
                        node=name,
                        uid=knot.node.metadata.uid,
                        limit=trouble.limit,
                        why=f"node {name} is not fenced: {trouble.why}",
                    )
                )
        return found

    async def _write(self) -> None:
        chosen = Counter(knot.choice.name for knot in self._observing.knots.values())
        boottime, wall = self._clock.boottime(), self._clock.wall()
        if boottime >= self._looked + PACE:
            self._look(boottime, wall)
        now = datetime.fromtimestamp(wall, UTC)
        found = self._observing.policies
        for entry in policies.entries(found.values()):
            fencers, held = self._fencers.get(entry.name, Fencers()), self._held.get(entry.name, HeldBack())
            entries = held.entries(found[entry.name].get("status") or {}, boottime, wall)
            wanted = policies.status(
                found[entry.name],
                entry,
                nodes=chosen[entry.name],
                conditions=(fencers.condition, held.condition(entries)),
                told={"fencers": fencers.entries, "heldBack": entries},
                now=now,
            )
            if wanted is None:
                continue
            try:
                await self._cluster.tell_policy(entry.name, wanted)
            except LastcallError as error:
                log.warning("the status of FencePolicy %s is not written: %s", entry.name, error)


def _tainted(knot: Knot) -> bool:
    """Whether its mark says that its boot is proved to be over: it waits for no fencing."""
    mark = overview.mark_of(knot.node)
    return mark is not None and mark.tainted and mark.boot_id == knot.node.status.node_info.boot_id
