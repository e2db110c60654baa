"""Nodes that fall silent: their conditions, their taints, and what their pods are called.

``k8s.io/kubernetes/pkg/controller/nodelifecycle``. The controller remembers when it has seen each node's last sign of
life; after a restart it takes every node for alive until the grace period has passed once more.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lastcall.lab.apiserver.meta import timestamp
from lastcall.lab.controllers import node_health, pods, taints, zones
from lastcall.lab.controllers.actions import Action, Decision, Patch, Tell
from lastcall.lab.controllers.kept import KeptByNode
from lastcall.lab.controllers.taints import Edits
from lastcall.lab.controllers.ticks import Ticks
from lastcall.lab.controllers.view import Object, Ref, View, ref
from lastcall.model.tolerations import NO_EXECUTE, NO_SCHEDULE

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
"""The taint, with effect NoSchedule, that each condition makes."""

_PASS = 0.1
"""Seconds after a look at the nodes until they are tainted (``NodeEvictionPeriod``)."""

_ZONES = Ref("zones", "", "")
_SOURCE = "node-controller"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Seconds; the defaults are those of Kubernetes 1.36."""

    period: float = 5.0
    """``--node-monitor-period``."""
    grace: float = 50.0
    """``--node-monitor-grace-period``: how long a node may be silent."""
    startup_grace: float = 60.0
    """``--node-startup-grace-period``: the same for one that has never said anything."""
    rates: zones.Rates = field(default_factory=zones.Rates)


class NodeLifecycle:
    """Looks at a node when it has changed, for its taints, and at every beat, for its health; then at the zones."""

    name = "nodelifecycle"
    resources: Sequence[str] = ("nodes", LEASES, "pods")

    def __init__(self, settings: Settings | None = None, renewals: node_health.Renewals | None = None) -> None:
        self._settings = settings or Settings()
        self._renewals: node_health.Renewals = renewals or (lambda name: None)
        self._ticks = Ticks(self._settings.period)
        self._due: dict[str, int] = {}
        """The beat at which a node is to be looked at: those are left out at which it cannot be found silent."""
        self._seen: dict[str, tuple[Object, Object | None]] = {}
        """Each node and its lease as they were then."""
        self._resting: set[str] = set()
        self._health: dict[str, node_health.Health] = {}
        self._unmarked: dict[str, int] = {}
        """Nodes that are not ready, some of whose pods may still be called ready: the beat of the last attempt."""
        self._waiting: dict[str, float] = {}
        """Nodes that are to get a NoExecute taint, and since when: the first come first."""
        self._zones: dict[str, zones.Zone] = {}
        self._standings = KeptByNode(zones.standing)
        self._stopped = False
        """Whether no zone has a ready node: then nothing is tainted."""
        self._beating = False

    def keys(self, resource: str, obj: Object, view: View) -> Iterable[Ref]:
        """A node that has changed; leases and pods are looked at on the beat, of which none is left out then."""
        if resource == LEASES:
            resting = obj["metadata"]["namespace"] == LEASE_NAMESPACE and obj["metadata"]["name"] in self._resting
            return [Ref("nodes", "", obj["metadata"]["name"])] if resting else []
        if resource != "nodes":
            return []
        return [ref("nodes", obj)] if self._beating else [ref("nodes", obj), _ZONES]

    def decide(self, key: Ref, view: View, now: float) -> Decision:
        """Conditions, taints, events, and the condition Ready of pods."""
        if key == _ZONES:
            return self._decide_zones(view, now)
        node = view.get(*key)
        if node is None:
            return self._gone(key)
        actions = list(self._introduced(key, node))
        edits = _no_schedule(node)
        lease, renewal = view.get(LEASES, LEASE_NAMESPACE, key.name), self._renewals(key.name)
        number, seen = self._ticks.number(now), (node, lease)
        if number >= self._due.get(key.name, 0):
            if flip := self._flip(key, node, lease, renewal, now):
                actions += flip
            else:
                edits += self._no_execute(node, now)
            self._due[key.name] = self._next_look(key.name, node, number, resting=renewal is not None)
        elif self._seen[key.name] != seen:
            self._due[key.name] = number + 1
        self._seen[key.name] = seen
        actions += [*taints.change(node, edits, now), *self._marks(key.name, node, view, now)]
        return Decision(tuple(actions), self._ticks.time(self._due[key.name]) - now)

    def _next_look(self, name: str, node: Object, number: int, *, resting: bool) -> int:
        """The next beat; of a node whose lease is renewed for certain, that at which it might be silent for too long."""
        health = self._health[name]
        if health.renewed is None or not resting or not taints.node_ready(node):
            self._resting.discard(name)
            return number + 1
        self._resting.add(name)
        return max(number + 1, self._ticks.number(health.probe + self._settings.grace))

    # -- which nodes there are -----------------------------------------------------------------------------------------

    def _introduced(self, key: Ref, node: Object) -> Iterator[Action]:
        if key.name in self._due:
            return
        if not taints.node_ready(node):
            self._unmarked[key.name] = 0
        yield _told(key, node["metadata"]["uid"], "RegisteredNode", f"Registered Node {key.name} in Controller")

    def _gone(self, key: Ref) -> Decision:
        if self._due.pop(key.name, None) is None:
            return Decision()
        self._health.pop(key.name, None)
        self._seen.pop(key.name, None)
        self._resting.discard(key.name)
        self._unmarked.pop(key.name, None)
        return Decision((_told(key, "", "RemovingNode", f"Removing Node {key.name} from Controller"),))

    # -- health --------------------------------------------------------------------------------------------------------

    def _flip(
        self, key: Ref, node: Object, lease: Object | None, renewal: node_health.Renewal | None, now: float
    ) -> list[Action]:
        """What is written once, when a node has been silent for too long. A renewal counts, written or not."""
        if renewal:
            lease = {"spec": {"renewTime": renewal.text}}
        health = node_health.observed(self._known(key.name, renewal, now), node, lease, now)
        self._health[key.name] = health
        grace = self._settings.startup_grace if health.heartbeat is None else self._settings.grace
        conditions = node_health.unknown(node, now) if now > health.probe + grace else []
        if not conditions:
            return []
        self._health[key.name] = node_health.silent(health, lease)
        self._waiting.setdefault(key.name, now)
        metadata, body = node["metadata"], {"status": {"conditions": conditions}}
        status = Patch(key, body, "status", uid=metadata["uid"], revision=metadata["resourceVersion"], strategic=True)
        if not taints.node_ready(node):
            return [status]
        self._unmarked[key.name] = 0
        said = f"Node {key.name} status is now: NodeNotReady"
        return [status, Tell(key, metadata["uid"], "Node", "v1", "NodeNotReady", said, source=_SOURCE)]

    def _known(self, name: str, renewal: node_health.Renewal | None, now: float) -> node_health.Health | None:
        """With the renewal that would have been seen at one of the beats that were left out."""
        known = self._health.get(name)
        if known is None or renewal is None:
            return known
        seen = self._ticks.first(renewal.at)
        before = seen < self._ticks.time(self._ticks.number(now)) - _PASS
        return node_health.renewed(known, renewal, seen) if before else known

    def _marks(self, name: str, node: Object, view: View, now: float) -> Iterator[Action]:
        """The pods of a node that this controller has found silent are not ready (``MarkPodsNotReady``).

        Tried once a beat: a kubelet that lives all the same says at once that they are.
        """
        number = self._ticks.number(now)
        if self._unmarked.get(name, number) == number or taints.node_ready(node):
            return
        self._unmarked[name] = number
        ready = [pod for pod in view.on_node(name) if pods.ready(pod)]
        if not ready:
            del self._unmarked[name]
        for pod in ready:
            place, uid = ref("pods", pod), pod["metadata"]["uid"]
            condition = {"type": "Ready", "status": "False", "lastTransitionTime": timestamp(now)}
            yield Patch(place, {"status": {"conditions": [condition]}}, "status", uid=uid, strategic=True)
            said = "Node is not ready"
            yield Tell(place, uid, "Pod", "v1", "NodeNotReady", said, type="Warning", source=_SOURCE)

    # -- taints with the effect NoExecute ------------------------------------------------------------------------------

    def _no_execute(self, node: Object, now: float) -> Edits:
        """They are taken off, or changed for one another, at once; a first one has to wait for its turn."""
        name, status = node["metadata"]["name"], pods.condition(node, "Ready").get("status")
        if status == "True":
            self._waiting.pop(name, None)
            self._unmarked.pop(name, None)
            return _NO_TAINTS
        if not status:
            return Edits()
        swap = _swap(status)
        present = {(taint.key, taint.effect) for taint in taints.taints_of(node)}
        if present & swap.remove:
            return swap
        if not swap.add <= present:
            self._waiting.setdefault(name, now)
        return Edits()

    def _decide_zones(self, view: View, now: float) -> Decision:
        if not self._beating:
            self._beating = True
            return Decision(again_in=self._ticks.wait(now, after=_PASS))
        actions = self._survey(view, now)
        waits = [self._ticks.wait(now, after=_PASS)]
        for name in sorted(self._waiting, key=lambda name: (self._waiting[name], name)):
            node = view.get("nodes", "", name)
            status = pods.condition(node, "Ready").get("status", "") if node else ""
            if node is None or status not in ("False", "Unknown"):
                del self._waiting[name]
            elif (wait := self._token(zones.zone_of(node), now)) > 0:
                waits.append(max(_PASS, wait))
            else:
                del self._waiting[name]
                actions += taints.change(node, _swap(status), now)
        return Decision(tuple(actions), min(waits))

    def _survey(self, view: View, now: float) -> list[Action]:
        """The state of each zone. When every node of every zone falls silent, the taints are taken off.

        When the first one is back then, all get their time anew.
        """
        ready: dict[str, list[bool]] = {}
        for standing in self._standings.of(view).values():
            if standing.counts:
                ready.setdefault(standing.zone, []).append(standing.ready)
        states = {name: zones.state_of(nodes, self._settings.rates) for name, nodes in ready.items()}
        sizes = {name: len(nodes) for name, nodes in ready.items()}
        self._zones = zones.after(self._zones, states, sizes, self._settings.rates, now)
        before, self._stopped = self._stopped, zones.everywhere(states)
        if before and not self._stopped:
            self._health = {name: node_health.alive(health, now) for name, health in self._health.items()}
        if before or not self._stopped:
            return []
        self._waiting.clear()
        return [patch for node in view.all("nodes") for patch in taints.change(node, _NO_TAINTS, now)]

    def _token(self, name: str, now: float) -> float:
        """Takes a zone's token, and is 0; or says how many seconds it takes until there is one."""
        zone = self._zones.get(name) or zones.unseen(self._settings.rates, now)
        wait = zone.limiter.ready_in(now)
        if wait <= 0:
            self._zones[name] = zones.Zone(zone.state, zone.limiter.taken(now))
        return wait


def _no_schedule(node: Object) -> Edits:
    """What the conditions say, at once."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    wanted = {_CONDITIONS[said] for one in conditions if (said := (one["type"], one["status"])) in _CONDITIONS}
    if (node.get("spec") or {}).get("unschedulable"):
        wanted.add(UNSCHEDULABLE)
    return _only(frozenset(wanted))


@functools.cache
def _only(wanted: frozenset[str]) -> Edits:
    """These with the effect NoSchedule, and none of the others that conditions make; there are few such sets."""
    others = {*_CONDITIONS.values(), UNSCHEDULABLE} - wanted
    return Edits(frozenset((key, NO_SCHEDULE) for key in wanted), frozenset((key, NO_SCHEDULE) for key in others))


def _swap(status: str) -> Edits:
    """The taint of a node that is not ready, and never the other one beside it."""
    both = [(NOT_READY, NO_EXECUTE), (UNREACHABLE, NO_EXECUTE)]
    own, other = both if status == "False" else reversed(both)
    return Edits(frozenset([own]), frozenset([other]))


_NO_TAINTS = Edits(remove=frozenset([(NOT_READY, NO_EXECUTE), (UNREACHABLE, NO_EXECUTE)]))


def _told(key: Ref, uid: str, reason: str, what: str) -> Tell:
    return Tell(key, uid, "Node", "v1", reason, f"Node {key.name} event: {what}", source=_SOURCE)
