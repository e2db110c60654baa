"""The node lifecycle controller: conditions, taints and pod readiness of nodes without heartbeats.

``k8s.io/kubernetes/pkg/controller/nodelifecycle``. The controller remembers when it observed each node's last
heartbeat. After a restart it considers every node alive until the grace period has passed again.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lastcall.model.tolerations import NO_EXECUTE, NO_SCHEDULE
from lastcall_lab.apiserver.values.object_meta import timestamp
from lastcall_lab.controllers.framework.actions import Action, Decision, PatchObject, RecordEvent
from lastcall_lab.controllers.framework.findings_cache import NodeFindings
from lastcall_lab.controllers.framework.periodic_ticks import PeriodicTicks
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, ref_of
from lastcall_lab.controllers.nodes import node_health, zones
from lastcall_lab.controllers.objects import pods, taints
from lastcall_lab.controllers.objects.taints import TaintEdits

LEASES = "leases.coordination.k8s.io"
LEASE_NAMESPACE = "kube-node-lease"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"

_CONDITIONS = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
"""The NoSchedule taint of each condition."""

_PASS = 0.1
"""Seconds between a check of the nodes and the taints (``NodeEvictionPeriod``)."""

_ZONES = ObjectRef("zones", "", "")
_SOURCE = "node-controller"


@dataclass(frozen=True, kw_only=True)
class NodeLifecycleSettings:
    """Seconds; the defaults are those of Kubernetes 1.36."""

    period: float = 5.0
    """``--node-monitor-period``."""
    grace: float = 50.0
    """``--node-monitor-grace-period``: seconds without a heartbeat until a node is unreachable."""
    startup_grace: float = 60.0
    """``--node-startup-grace-period``: the same for a node without any heartbeat yet."""
    rates: zones.TaintRates = field(default_factory=zones.TaintRates)


class NodeLifecycleController:
    """Reconciles a node's taints on change, and its health at every tick; after that, the zones."""

    name = "nodelifecycle"
    resources: Sequence[str] = ("nodes", LEASES, "pods")

    def __init__(
        self, settings: NodeLifecycleSettings | None = None, renewals: node_health.Renewals | None = None
    ) -> None:
        self._settings = settings or NodeLifecycleSettings()
        self._renewals: node_health.Renewals = renewals or (lambda name: None)
        self._ticks = PeriodicTicks(self._settings.period)
        self._due: dict[str, int] = {}
        """The next tick at which to check a node; it cannot be found silent at the skipped ones."""
        self._seen: dict[str, tuple[Object, Object | None]] = {}
        """Each node and its Lease at that time."""
        self._resting: set[str] = set()
        self._health: dict[str, node_health.NodeHealth] = {}
        self._unmarked: dict[str, int] = {}
        """Not-ready nodes, some of whose pods may still be ready: the tick of the last attempt to mark these."""
        self._waiting: dict[str, float] = {}
        """Nodes that wait for a NoExecute taint, and since when; first in, first out."""
        self._zones: dict[str, zones.ZoneRecord] = {}
        self._standings = NodeFindings(zones.zone_membership)
        self._stopped = False
        """Whether no zone has a ready node; then no node is tainted."""
        self._beating = False

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """A changed node. Leases and pods are checked at the ticks; none is skipped after a change."""
        if resource == LEASES:
            resting = obj["metadata"]["namespace"] == LEASE_NAMESPACE and obj["metadata"]["name"] in self._resting
            return [ObjectRef("nodes", "", obj["metadata"]["name"])] if resting else []
        if resource != "nodes":
            return []
        return [ref_of("nodes", obj)] if self._beating else [ref_of("nodes", obj), _ZONES]

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """Conditions, taints, events, and the Ready condition of pods."""
        if key == _ZONES:
            return self._decide_zones(view, now)
        node = view.get(*key)
        if node is None:
            return self._report_removed(key)
        actions = list(self._report_registered(key, node))
        edits = _no_schedule_edits(node)
        lease, renewal = view.get(LEASES, LEASE_NAMESPACE, key.name), self._renewals(key.name)
        number, seen = self._ticks.tick_number(now), (node, lease)
        if number >= self._due.get(key.name, 0):
            if flip := self._mark_unreachable(key, node, lease, renewal, now):
                actions += flip
            else:
                edits += self._no_execute_edits(node, now)
            self._due[key.name] = self._next_beat(key.name, node, number, resting=renewal is not None)
        elif self._seen[key.name] != seen:
            self._due[key.name] = number + 1
        self._seen[key.name] = seen
        actions += [*taints.apply_edits(node, edits, now), *self._mark_pods_not_ready(key.name, node, view, now)]
        return Decision(tuple(actions), self._ticks.tick_time(self._due[key.name]) - now)

    def _next_beat(self, name: str, node: Object, number: int, *, resting: bool) -> int:
        """The next tick.

        If the Lease is known to be renewed, the first tick at which the node could be silent for too long.
        """
        health = self._health[name]
        if health.renewed is None or not resting or not taints.is_node_ready(node):
            self._resting.discard(name)
            return number + 1
        self._resting.add(name)
        return max(number + 1, self._ticks.tick_number(health.probe + self._settings.grace))

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _report_registered(self, key: ObjectRef, node: Object) -> Iterator[Action]:
        if key.name in self._due:
            return
        if not taints.is_node_ready(node):
            self._unmarked[key.name] = 0
        yield _node_event(key, node["metadata"]["uid"], "RegisteredNode", f"Registered Node {key.name} in Controller")

    def _report_removed(self, key: ObjectRef) -> Decision:
        if self._due.pop(key.name, None) is None:
            return Decision()
        self._health.pop(key.name, None)
        self._seen.pop(key.name, None)
        self._resting.discard(key.name)
        self._unmarked.pop(key.name, None)
        return Decision((_node_event(key, "", "RemovingNode", f"Removing Node {key.name} from Controller"),))

    # -- health --------------------------------------------------------------------------------------------------------

    def _mark_unreachable(
        self, key: ObjectRef, node: Object, lease: Object | None, renewal: node_health.LeaseRenewal | None, now: float
    ) -> list[Action]:
        """The writes when a node's grace period ends. A renewal counts whether written or computed."""
        if renewal:
            lease = {"spec": {"renewTime": renewal.text}}
        health = node_health.observe_health(self._health_with_renewal(key.name, renewal, now), node, lease, now)
        self._health[key.name] = health
        grace = self._settings.startup_grace if health.heartbeat is None else self._settings.grace
        conditions = node_health.unknown_conditions(node, now) if now > health.probe + grace else []
        if not conditions:
            return []
        self._health[key.name] = node_health.mark_silent(health, lease)
        self._waiting.setdefault(key.name, now)
        metadata, body = node["metadata"], {"status": {"conditions": conditions}}
        status = PatchObject(
            key, body, "status", uid=metadata["uid"], revision=metadata["resourceVersion"], strategic=True
        )
        if not taints.is_node_ready(node):
            return [status]
        self._unmarked[key.name] = 0
        said = f"Node {key.name} status is now: NodeNotReady"
        return [status, RecordEvent(key, metadata["uid"], "Node", "v1", "NodeNotReady", said, source=_SOURCE)]

    def _health_with_renewal(
        self, name: str, renewal: node_health.LeaseRenewal | None, now: float
    ) -> node_health.NodeHealth | None:
        """The health with the renewal that a skipped tick would have observed."""
        known = self._health.get(name)
        if known is None or renewal is None:
            return known
        seen = self._ticks.first_tick(renewal.at)
        before = seen < self._ticks.tick_time(self._ticks.tick_number(now)) - _PASS
        return node_health.with_renewal(known, renewal, seen) if before else known

    def _mark_pods_not_ready(self, name: str, node: Object, view: View, now: float) -> Iterator[Action]:
        """Marks the pods of a silent node as not ready (``MarkPodsNotReady``).

        Once per tick: a kubelet that is alive reports them ready again at once.
        """
        number = self._ticks.tick_number(now)
        if self._unmarked.get(name, number) == number or taints.is_node_ready(node):
            return
        self._unmarked[name] = number
        ready = [pod for pod in view.on_node(name) if pods.is_ready(pod)]
        if not ready:
            del self._unmarked[name]
        for pod in ready:
            place, uid = ref_of("pods", pod), pod["metadata"]["uid"]
            condition = {"type": "Ready", "status": "False", "lastTransitionTime": timestamp(now)}
            yield PatchObject(place, {"status": {"conditions": [condition]}}, "status", uid=uid, strategic=True)
            said = "Node is not ready"
            yield RecordEvent(place, uid, "Pod", "v1", "NodeNotReady", said, type="Warning", source=_SOURCE)

    # -- taints with the effect NoExecute ------------------------------------------------------------------------------

    def _no_execute_edits(self, node: Object, now: float) -> TaintEdits:
        """Removes or swaps NoExecute taints at once; the first taint of a node waits for the rate limit."""
        name, status = node["metadata"]["name"], pods.condition_of(node, "Ready").get("status")
        if status == "True":
            self._waiting.pop(name, None)
            self._unmarked.pop(name, None)
            return _NO_TAINTS
        if not status:
            return TaintEdits()
        swap = _swap_edits(status)
        present = {(taint.key, taint.effect) for taint in taints.taints_of(node)}
        if present & swap.remove:
            return swap
        if not swap.add <= present:
            self._waiting.setdefault(name, now)
        return TaintEdits()

    def _decide_zones(self, view: View, now: float) -> Decision:
        if not self._beating:
            self._beating = True
            return Decision(again_in=self._ticks.seconds_until_next(now, after=_PASS))
        actions = self._survey_zones(view, now)
        waits = [self._ticks.seconds_until_next(now, after=_PASS)]
        for name in sorted(self._waiting, key=lambda name: (self._waiting[name], name)):
            node = view.get("nodes", "", name)
            status = pods.condition_of(node, "Ready").get("status", "") if node else ""
            if node is None or status not in ("False", "Unknown"):
                del self._waiting[name]
            elif (wait := self._take_zone_token(zones.zone_of(node), now)) > 0:
                waits.append(max(_PASS, wait))
            else:
                del self._waiting[name]
                actions += taints.apply_edits(node, _swap_edits(status), now)
        return Decision(tuple(actions), min(waits))

    def _survey_zones(self, view: View, now: float) -> list[Action]:
        """The state of each zone. While all nodes of all zones are silent, the taints are removed.

        When the first node is back, all nodes get a new grace period.
        """
        ready: dict[str, list[bool]] = {}
        for standing in self._standings.find_by_node(view).values():
            if standing.counts:
                ready.setdefault(standing.zone, []).append(standing.ready)
        states = {name: zones.zone_state(nodes, self._settings.rates) for name, nodes in ready.items()}
        sizes = {name: len(nodes) for name, nodes in ready.items()}
        self._zones = zones.next_zones(self._zones, states, sizes, self._settings.rates, now)
        before, self._stopped = self._stopped, zones.is_full_disruption(states)
        if before and not self._stopped:
            self._health = {name: node_health.mark_alive(health, now) for name, health in self._health.items()}
        if before or not self._stopped:
            return []
        self._waiting.clear()
        return [patch for node in view.all("nodes") for patch in taints.apply_edits(node, _NO_TAINTS, now)]

    def _take_zone_token(self, name: str, now: float) -> float:
        """Takes a zone's token and returns 0, or returns the seconds until one is available."""
        zone = self._zones.get(name) or zones.new_zone(self._settings.rates, now)
        wait = zone.limiter.ready_in(now)
        if wait <= 0:
            self._zones[name] = zones.ZoneRecord(zone.state, zone.limiter.with_token_taken(now))
        return wait


def _no_schedule_edits(node: Object) -> TaintEdits:
    """The NoSchedule taints that the conditions demand; written at once."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    wanted = {_CONDITIONS[said] for one in conditions if (said := (one["type"], one["status"])) in _CONDITIONS}
    if (node.get("spec") or {}).get("unschedulable"):
        wanted.add(UNSCHEDULABLE)
    return _exact_no_schedule(frozenset(wanted))


@functools.cache
def _exact_no_schedule(wanted: frozenset[str]) -> TaintEdits:
    """These NoSchedule taints and no other condition taint; few such sets exist."""
    others = {*_CONDITIONS.values(), UNSCHEDULABLE} - wanted
    return TaintEdits(frozenset((key, NO_SCHEDULE) for key in wanted), frozenset((key, NO_SCHEDULE) for key in others))


def _swap_edits(status: str) -> TaintEdits:
    """Swaps the not-ready and the unreachable taint; a node never has both."""
    both = [(NOT_READY, NO_EXECUTE), (UNREACHABLE, NO_EXECUTE)]
    own, other = both if status == "False" else reversed(both)
    return TaintEdits(frozenset([own]), frozenset([other]))


_NO_TAINTS = TaintEdits(remove=frozenset([(NOT_READY, NO_EXECUTE), (UNREACHABLE, NO_EXECUTE)]))


def _node_event(key: ObjectRef, uid: str, reason: str, what: str) -> RecordEvent:
    return RecordEvent(key, uid, "Node", "v1", reason, f"Node {key.name} event: {what}", source=_SOURCE)
