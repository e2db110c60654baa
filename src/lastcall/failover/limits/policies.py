"""Which FencePolicy holds for which node, and what a policy's status says (pure).

A policy that breaks a rule still stands before the others that are chosen after it: the nodes that it selects are left
alone until it is mended, since what its author wants is not known. If not even its selector can be read, that is every node
for which no policy before it is chosen.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lastcall.errors import InvalidInput
from lastcall.failover.limits.storms import Limits
from lastcall.model.decode import collect
from lastcall.model.fence_policies import read, selects
from lastcall.model.fence_policy import FencePolicy, NodeSelector, PolicyLimits
from lastcall.model.pods import Int32

ACCEPTED = "Accepted"
"""The condition of a policy: whether it is heeded, and if not, why."""
INVALID = "Invalid"
"""The reason of Accepted=False."""


def storm_limits(limits: PolicyLimits) -> Limits:
    """The same as the storm guard knows them."""
    return Limits(
        min_healthy=limits.min_healthy,
        per_domain=limits.per_domain,
        per_hour=limits.per_hour,
        settle=limits.settle_seconds,
    )


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A policy object: what was read of it, or why it is not heeded."""

    name: str
    priority: int
    selector: NodeSelector
    policy: FencePolicy | None
    violations: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What holds for a node: a policy, or none, and why none. ``name`` is that of the policy that was chosen."""

    policy: FencePolicy | None
    name: str = ""
    why: str = ""


def entries(objects: Iterable[Any]) -> tuple[Entry, ...]:
    """The policy objects of a cluster in the order in which they are chosen: by priority, the greatest first, then by name."""
    return tuple(sorted(map(_entry, objects), key=lambda one: (-one.priority, one.name)))


def same(before: Sequence[Entry], now: Sequence[Entry]) -> bool:
    """Whether two lists of policies say the same of every node: a policy's status has no part in it."""
    return [_compared_fields(one) for one in before] == [_compared_fields(one) for one in now]


def _compared_fields(entry: Entry) -> tuple[object, ...]:
    spec = entry.policy.spec if entry.policy else None
    return entry.name, entry.priority, entry.selector, entry.violations, spec


def choose(labels: Mapping[str, str], among: Sequence[Entry]) -> Choice:
    """What holds for a node with these labels; ``among`` as ``entries`` gives them."""
    found = next((one for one in among if selects(one.selector, labels)), None)
    if found is None:
        return Choice(policy=None, why="no FencePolicy selects the node")
    if found.policy is None:
        why = f"FencePolicy {found.name} selects the node, and is not valid: {'; '.join(found.violations)}"
        return Choice(policy=None, name=found.name, why=why)
    return Choice(policy=found.policy, name=found.name)


def status(
    policy: Mapping[str, Any],
    entry: Entry,
    *,
    nodes: int,
    conditions: Sequence[Mapping[str, str]],
    told: Mapping[str, Sequence[Mapping[str, Any]]],
    now: datetime,
) -> dict[str, Any] | None:
    """What the object's status should be; None if it is so already.

    ``nodes``: how many it is chosen for. ``conditions``: those beside ``Accepted``, without the fields that all conditions
    share. ``told``: what else is in it, by field.
    """
    before = policy.get("status") or {}
    generation = (policy.get("metadata") or {}).get("generation", 0)
    accepted = {
        "type": ACCEPTED,
        "status": "True" if entry.policy else "False",
        "reason": ACCEPTED if entry.policy else INVALID,
        "message": "; ".join(entry.violations)[:32768] or "it is heeded",
    }
    dated = []
    for one in (accepted, *conditions):
        since = [old["lastTransitionTime"] for old in before.get("conditions") or () if _same(old, one)]
        date = since[0] if since else now.strftime("%Y-%m-%dT%H:%M:%SZ")
        dated.append({**one, "observedGeneration": generation, "lastTransitionTime": date})
    lists = {field: [*entries] for field, entries in told.items()}
    after = {"conditions": dated, **lists, "nodes": nodes, "observedGeneration": generation}
    return None if after == before else after


def _same(condition: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(condition.get(field) == wanted[field] for field in ("type", "status"))


def _entry(found: Any) -> Entry:
    try:
        policy = read(found)
    except InvalidInput as error:
        spec = _mapping(_mapping(found).get("spec"))
        return Entry(
            name=str(_mapping(_mapping(found).get("metadata")).get("name", "")),
            priority=_read(spec.get("priority"), Int32, 0),
            selector=_read(spec.get("nodeSelector"), NodeSelector, NodeSelector()),
            policy=None,
            violations=error.violations,
        )
    return Entry(name=policy.name, priority=policy.spec.priority, selector=policy.spec.node_selector, policy=policy)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _read(value: Any, type_: Any, default: Any) -> Any:
    """As much as can be read; a selector that cannot be read selects everything."""
    found, wrong = collect(value, type_)
    return default if value is None or wrong else found
