"""Decides whether the storm limits allow fencing a node now (pure).

The limits keep a fault of the controller or of the network from taking the cluster down. Each rule refuses with a
sentence and a time to check again; fencing is allowed only if no rule refuses. The decision to fence needs more: the
node is suspected, and the wait for its own shutdown notice is over.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from lastcall.errors import InvalidInput
from lastcall.model import duration
from lastcall.model.int_or_percent import resolve_portion

HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class StormLimits:
    """The limits of a policy. InvalidInput if a value is out of range."""

    min_healthy: int | str = "51%"
    """The least number or share of healthy nodes; below it no node is fenced. Percentages round up (NodeHealthCheck:
    ``minHealthy``).
    """
    per_domain: int = 1
    """The number of nodes of one failure domain that may be fenced, not yet failed over and not yet back at one time.
    Nodes without a domain have no such limit: they are not known to share a cause of failure.
    """
    per_hour: int = 3
    """The number of fencings within any 3600 seconds."""
    settle: float = 60.0
    """Seconds for which the controller distrusts its own view after API errors, a clock step, or a loss of most nodes
    at once.
    """

    def __post_init__(self) -> None:
        wrong = []
        try:
            least = resolve_portion(self.min_healthy, 100, up=True)
        except ValueError:
            least = -1
        if least < 0 or (isinstance(self.min_healthy, str) and least > 100):
            wrong.append(f"min_healthy: {self.min_healthy}: must be a number from 0, or a percentage from 0% to 100%")
        wrong += [
            f"{name}: {value}: must be 1 or more"
            for name, value in (("per_domain", self.per_domain), ("per_hour", self.per_hour))
            if value < 1
        ]
        if not 0 <= self.settle < float("inf"):
            wrong.append(f"settle: {self.settle:g}: must be 0 s or more, and finite")
        if wrong:
            raise InvalidInput("limits", wrong)


@dataclass(frozen=True, kw_only=True)
class Member:
    """A node of the cluster, as the controller sees it."""

    name: str
    healthy: bool
    """Ready, and its Lease renewed in time."""
    lost: bool = False
    """No sign of life. A node that reports Ready=False is unhealthy, but not lost."""
    domain: str = ""
    """Its zone or rack; empty if unknown."""
    control_plane: bool = False
    etcd: bool = False
    """Whether a voting member of the control plane's etcd runs on it."""


@dataclass(frozen=True, kw_only=True)
class Fencing:
    """A fencing, under way or ended; ``boot_id`` is the boot to end.

    ``began`` is the time from which it counts towards its hour (``storm_view.counts_from``).

    It is open until the node is back: healthy, with another boot ID. A failed fencing stays open until a person ends
    it, because the machine may be off.
    """

    node: str
    boot_id: str
    domain: str
    control_plane: bool
    began: float
    open: bool = True
    ordered: bool = True
    """A fencer may have received the order to power off. Until then the limits are checked again before the order."""
    failed_over: bool = False
    """The boot is proved to be over and nothing remains on it, so another fencing does not make its failure domain
    worse.
    """


@dataclass(frozen=True, kw_only=True)
class StormView:
    """The controller's knowledge of the cluster and of itself; times in seconds on its own clock."""

    members: Sequence[Member]
    fencings: Sequence[Fencing] = ()
    """All open fencings, and all that began within the last hour."""
    api_failed: float | None = None
    """The last time at which so many requests to the API server failed that its answers are not trusted."""
    api_trouble: str = ""
    """How many failed, as the beginning of a sentence that ends with how long ago; empty if unknown."""
    clock_stepped: float | None = None
    """The last time at which the wall clock jumped against the monotonic one, or the controller was suspended."""
    most_lost: float | None = None
    """The last time at which more than half of the nodes were lost at once. While they come back, the last ones have
    been silent since then, as all were (node lifecycle's ``handleDisruption`` restarts all probe times).
    """


class Limit(Enum):
    """The limit that forbids a fencing; the values appear in metrics and events."""

    NODES_LOST = "NodesLost"
    API_SERVER = "APIServerFailing"
    CLOCK = "ClockStepped"
    PER_HOUR = "PerHour"
    PER_DOMAIN = "PerDomain"
    CONTROL_PLANE = "ControlPlane"
    QUORUM = "EtcdQuorum"
    MIN_HEALTHY = "MinHealthy"


@dataclass(frozen=True)
class LimitAnswer:
    """``again``: when to check again after a refusal, at the latest; the cause may end earlier.

    ``limit``: the cause.
    """

    allowed: bool
    why: str
    again: float | None = None
    limit: Limit | None = None
    cause: str = ""
    """``why`` without the elapsed time."""
    blocked_by: tuple[str, ...] = ()
    """The names of the nodes that use up the limit."""
    not_before: float | None = None
    """The limit applies at least until this time, whatever nodes do; None if nodes may end it earlier."""


def may_fence(name: str, boot_id: str, view: StormView, limits: StormLimits, now: float) -> LimitAnswer:
    """Whether the node may be fenced at ``now``.

    A fencing of the same boot with an order given continues and counts once.
    """
    node = next((one for one in view.members if one.name == name), None)
    if node is None:
        return LimitAnswer(allowed=False, why=f"no node {name} is known of", again=now + limits.settle)
    if refused := view_trouble(view, limits, now):
        return refused
    own = [one for one in view.fencings if one.open and (one.node, one.boot_id) == (name, boot_id)]
    if any(one.ordered for one in own):
        return LimitAnswer(allowed=True, why=f"node {name} is being fenced already")
    if own:
        view = replace(view, fencings=[one for one in view.fencings if one not in own])
    refused = next(
        (
            one
            for rules in (_count_limits, _control_plane_limits, _health_limits)
            for one in rules(node, view, limits, now)
        ),
        None,
    )
    return refused or LimitAnswer(allowed=True, why=f"no limit stands against fencing node {name}")


def view_trouble(view: StormView, limits: StormLimits, now: float) -> LimitAnswer | None:
    """Why no node at all may be fenced: the view is not reliable, so nodes may only appear lost.

    None if it is reliable.
    """
    return next(_view_troubles(view, limits, now), None)


def _view_troubles(view: StormView, limits: StormLimits, now: float) -> Iterator[LimitAnswer]:
    lost, every = [one.name for one in view.members if one.lost], len(view.members)
    if 2 * len(lost) > every:
        why = f"{len(lost)} of {every} nodes are lost at once: rather the controller is cut off than they"
        yield _refuse_fencing(Limit.NODES_LOST, why, now + limits.settle, blocked_by=lost)
    for limit, at, what in (
        (Limit.API_SERVER, view.api_failed, view.api_trouble or "the API server failed"),
        (Limit.CLOCK, view.clock_stepped, "the controller's clock jumped"),
        (Limit.NODES_LOST, view.most_lost, "more than half of the nodes were lost at once"),
    ):
        if at is not None and now < at + limits.settle:
            again = at + limits.settle
            yield _refuse_fencing(
                limit, f"{what} {duration.format_elapsed(now - at)} ago", again, cause=what, not_before=again
            )


def _count_limits(node: Member, view: StormView, limits: StormLimits, now: float) -> Iterator[LimitAnswer]:
    recent = sorted((one for one in view.fencings if now < one.began + HOUR), key=lambda one: one.began)
    if len(recent) >= limits.per_hour:
        again = recent[-limits.per_hour].began + HOUR
        yield _refuse_fencing(
            Limit.PER_HOUR,
            f"{_count_text(len(recent))} fenced within the last hour, and {limits.per_hour} may be",
            again,
            blocked_by=(one.node for one in recent),
            not_before=again,
        )
    if not node.domain:
        return
    there = {one.node for one in _other_fencings(node, view) if one.domain == node.domain and not one.failed_over}
    if len(there) >= limits.per_domain:
        why = f"in failure domain {node.domain} {_names_text(there)} not back yet, and {limits.per_domain} may be away"
        yield _refuse_fencing(Limit.PER_DOMAIN, why, now + limits.settle, blocked_by=there)


def _control_plane_limits(node: Member, view: StormView, limits: StormLimits, now: float) -> Iterator[LimitAnswer]:
    others = {one.node for one in _other_fencings(node, view) if one.control_plane}
    if node.control_plane and others:
        why = f"{_names_text(others)} of the control plane not back yet, and one at a time is fenced"
        yield _refuse_fencing(Limit.CONTROL_PLANE, why, now + limits.settle, blocked_by=others)
    voters = [one for one in view.members if one.etcd]
    away = _nodes_away(node, voters, view)
    left, needed = len(voters) - len(away), len(voters) // 2 + 1
    if node.etcd and left < needed:
        why = f"without it {left} of {len(voters)} etcd members are healthy, and the quorum is {needed}"
        yield _refuse_fencing(Limit.QUORUM, why, now + limits.settle, blocked_by=away - {node.name})


def _health_limits(node: Member, view: StormView, limits: StormLimits, now: float) -> Iterator[LimitAnswer]:
    every = len(view.members)
    away = _nodes_away(node, view.members, view)
    left, needed = every - len(away), resolve_portion(limits.min_healthy, every, up=True)
    if left < needed:
        why = f"{left} of {every} nodes are healthy without it, and {needed} have to be"
        yield _refuse_fencing(Limit.MIN_HEALTHY, why, now + limits.settle, blocked_by=away - {node.name})


def _other_fencings(node: Member, view: StormView) -> list[Fencing]:
    """The open fencings of other nodes. Another boot of the same node does not use up another node's place."""
    return [one for one in view.fencings if one.open and one.node != node.name]


def _nodes_away(node: Member, members: Iterable[Member], view: StormView) -> set[str]:
    """The unhealthy nodes if this one is fenced: itself, unhealthy ones, and all with an open fencing."""
    away = {node.name, *(one.node for one in _other_fencings(node, view))}
    return {one.name for one in members if not one.healthy or one.name in away}


def _refuse_fencing(
    limit: Limit,
    why: str,
    again: float,
    *,
    cause: str = "",
    blocked_by: Iterable[str] = (),
    not_before: float | None = None,
) -> LimitAnswer:
    names = tuple(sorted({*blocked_by}))
    return LimitAnswer(
        allowed=False,
        why=why,
        again=again,
        limit=limit,
        cause=cause or why,
        blocked_by=names,
        not_before=not_before,
    )


def _count_text(count: int) -> str:
    return "1 node was" if count == 1 else f"{count} nodes were"


def _names_text(found: Iterable[str]) -> str:
    names = sorted(found)
    return f"node {names[0]} is" if len(names) == 1 else f"nodes {', '.join(names)} are"
