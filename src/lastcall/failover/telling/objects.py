"""A Case from the objects of a cluster alone, for people who ask without having observed (pure).

The controller goes by what it has seen itself, on its own clock. Here there are only the times that stand in the objects,
which others have written by their clocks; nothing is ever done because of such a Case. Times are seconds since 1970.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from lastcall import names
from lastcall.failover.deciding import following, left, remaining
from lastcall.failover.deciding.case import Case, Device, NodeNow, Policy
from lastcall.failover.knowing import evidence, hearsay, remarks
from lastcall.failover.knowing.acknowledgement import acknowledged
from lastcall.failover.knowing.evidence import Verdict
from lastcall.failover.knowing.facts import Boot, Fact, LastWord, LeaseSeen, NodeSeen
from lastcall.failover.knowing.owner import OwnerMark, read
from lastcall.failover.knowing.proofs import LIVES, Terms, freshness, patience
from lastcall.failover.knowing.replaced import replaced
from lastcall.failover.knowing.storage_leases import StorageLeases
from lastcall.failover.knowing.taints import like_ours
from lastcall.failover.limits import lookalikes, policies, storms
from lastcall.failover.limits.knot import UNCHOSEN
from lastcall.failover.limits.lookalikes import Lookalikes
from lastcall.failover.limits.overview import CONTROL_PLANE, ETCD, counts_from, over
from lastcall.failover.limits.storms import Answer, Fencing, Member, View
from lastcall.failover.telling import fencer_failures, held_back
from lastcall.model.base import Facts
from lastcall.model.fence_policy import FencePolicy, PowerOn, RemoveTaint
from lastcall.model.fencer import TargetCheck
from lastcall.model.listfile import Kind, read_list
from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.model.observed import LeaseMeta, LiveNode, LivePod, WatchedAttachment, WatchedLease
from lastcall.model.shutdown import Outcome
from lastcall.model.snapshot import NODE_LEASES, PersistentVolume
from lastcall.model.watchdog_lease import promised

ELECTION = "lastcall-controller"
"""The name of the Lease by which controllers elect who leads, in whichever namespace they have been given."""
LAPSE = 60.0
"""So long after its last renewal nobody leads by it any more, whatever the clocks (it lasts 15 s)."""
SOMEBODY = "lastcall"
"""Who decides, where nobody leads."""
_WATCHDOG = (
    "its agent tells of an armed watchdog: what that proves only a controller knows that has observed it (/failover)"
)
_DAY = 86_400.0
_TICK = 1e-3


class Objects(Facts, frozen=True):
    """What was found of a cluster; each list may be short of what there is."""

    nodes: tuple[LiveNode, ...] = ()
    pods: tuple[LivePod, ...] = ()
    leases: tuple[WatchedLease, ...] = ()
    """Of nodes alone (``kube-node-lease``)."""
    agents: tuple[WatchedLease, ...] = ()
    """Of nodes' agents (``lastcall-nodes``)."""
    attachments: tuple[WatchedAttachment, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    shutdowns: tuple[NodeShutdown, ...] = ()
    policies: tuple[dict[str, Any], ...] = ()
    """As they are, valid or not."""
    elections: tuple[WatchedLease, ...] | None = None
    """The Leases of the controllers' leader elections; None if they were not looked for."""

    def node(self, name: str) -> LiveNode | None:
        """None if there is none."""
        return next((one for one in self.nodes if one.metadata.name == name), None)


class _Meta(LeaseMeta, frozen=True):
    namespace: str = ""


class PlacedLease(WatchedLease, frozen=True):
    """Of a node, or of an election: that is told by its namespace."""

    metadata: _Meta


_KINDS = {
    "Node": Kind("v1", LiveNode),
    "Pod": Kind("v1", LivePod, namespaced=True),
    "Lease": Kind("coordination.k8s.io/v1", PlacedLease, namespaced=True),
    "VolumeAttachment": Kind("storage.k8s.io/v1", WatchedAttachment),
    "PersistentVolume": Kind("v1", PersistentVolume),
    "NodeShutdown": Kind(names.API_VERSION, NodeShutdown),
    "FencePolicy": Kind(names.API_VERSION, dict),
}


def elects(lease: PlacedLease) -> bool:
    """Whether controllers may elect by it: not by what a node, whatever its name, says in its own."""
    return lease.metadata.name == ELECTION and lease.metadata.namespace not in (NODE_LEASES, names.NODES_NAMESPACE)


def from_file(data: bytes, source: str) -> Objects:
    """What ``kubectl get nodes,pods,... -A -o json|yaml`` gives; other kinds are passed over. InvalidInput."""
    found = read_list(data, source, _KINDS).objects
    elections = tuple(one for one in found["Lease"] if elects(one))
    return Objects(
        nodes=tuple(found["Node"]),
        pods=tuple(found["Pod"]),
        leases=tuple(one for one in found["Lease"] if one.metadata.namespace == NODE_LEASES),
        agents=tuple(one for one in found["Lease"] if one.metadata.namespace == names.NODES_NAMESPACE),
        attachments=tuple(found["VolumeAttachment"]),
        volumes=tuple(found["PersistentVolume"]),
        shutdowns=tuple(found["NodeShutdown"]),
        policies=tuple(found["FencePolicy"]),
        elections=elections or None,
    )


def leaderless(objects: Objects, now: float) -> str:
    """Why nothing is done whatever the Case says: nobody leads. Empty if somebody does, or if that is not known."""
    if objects.elections is None:
        return ""
    if not objects.elections:
        return "no lastcall controller has ever led in this cluster"
    held = [one for one in objects.elections if one.spec.holder_identity]
    renewed = max((_seconds(one.spec.renew_time) or 0.0 for one in held), default=0.0)
    return "" if now - renewed < LAPSE else "no lastcall controller leads: none has renewed the Lease of their election"


def case_of(objects: Objects, name: str, now: float) -> Case:
    """The node's, as a controller would see it that had observed since the times that stand in the objects."""
    node = objects.node(name)
    if node is None:
        return Case(name=name, me=SOMEBODY, leader=SOMEBODY, wall=now, node=None, policy=None, observed=now)
    mark_text = node.mark
    mark = read(mark_text)
    me = mark.by if isinstance(mark, OwnerMark) else SOMEBODY
    heard, fresh = _heard(objects, node, now), _fresh(objects, name)
    begun = min(now, heard if heard is not None else now) - _DAY
    info = node.status.node_info
    boot = Boot(id=info.boot_id, system_uuid=info.system_uuid, since=begun) if info.boot_id else None
    facts = [*_facts(objects, node, heard, begun), *_told_by_others(objects, name, boot, now)] if boot else []
    choice = policies.choose(node.metadata.labels, policies.entries(objects.policies))
    chosen = choice.policy
    claims = _bound(objects)
    pods = [pod for pod in objects.pods if pod.spec.node_name == name]
    case = Case(
        name=name,
        me=me,
        leader=me,
        wall=now,
        node=NodeNow(boot_id=info.boot_id, ready=node.ready.status, taints=node.spec.taints, mark_text=mark_text),
        policy=_policy(chosen, fresh) if chosen else None,
        no_policy=choice.why,
        observed=begun,
        heard=heard,
        boot=boot,
        verdict=_verdict(objects, name, boot, evidence.assess(boot, facts, now, Terms(fresh=fresh))) if boot else None,
        held_until=evidence.held_until(boot, facts, now) if boot else None,
        gone=evidence.gone(boot, facts) if boot else frozenset(),
        storm=_storm(objects, chosen, name, info.boot_id, now),
        devices=tuple(_devices(objects, node, chosen, now)),
        pods=tuple(left.pod(pod, node, claims, {}, now) for pod in pods),
        attachments=tuple(left.attachment(one, {}) for one in objects.attachments if one.spec.node_name == name),
        back_since=now if node.ready.status == "True" else None,
    )
    places = replaced(following.asked(case), objects.pods, node=name, before={})
    return replace(case, replacements=following.told(case, places.keys()))


def _bound(objects: Objects) -> dict[tuple[str, str], str]:
    """The volume of each claim, by the claim's namespace and name."""
    return {
        (v.spec.claim_ref.namespace, v.spec.claim_ref.name): v.metadata.name
        for v in objects.volumes
        if v.spec.claim_ref
    }


def _heard(objects: Objects, node: LiveNode, now: float) -> float | None:
    """By its Lease, or by the heartbeat of a condition Ready that a kubelet has written. Never in the future."""
    signs = [one.spec.renew_time for one in objects.leases if one.metadata.name == node.metadata.name]
    if node.ready.status in LIVES:
        signs.append(node.ready.last_heartbeat_time)
    times = [at for sign in signs if (at := _seconds(sign)) is not None]
    return min(now, float(int(max(times)))) if times else None


def _fresh(objects: Objects, name: str) -> float:
    lasts = (one.spec.lease_duration_seconds for one in objects.leases if one.metadata.name == name)
    return freshness(next(lasts, None))


def _facts(objects: Objects, node: LiveNode, heard: float | None, begun: float) -> Iterator[Fact]:
    """A taint that was set by hand, and a word without a renewal, are none: they count for who has seen them come alone."""
    info, last = node.status.node_info, begun + _TICK if heard is None else heard
    if heard is not None:
        yield LeaseSeen(boot_id=info.boot_id, at=heard)
    yield NodeSeen(boot_id=info.boot_id, system_uuid=info.system_uuid, ready=node.ready.status, at=last)
    renewed = next((one.spec.renew_time for one in objects.leases if one.metadata.name == node.metadata.name), "")
    boot = Boot(id=info.boot_id, system_uuid=info.system_uuid, since=begun)
    if word := acknowledged(node.acknowledged, boot, seen=begun, renewed=(renewed, last)):
        yield word
    for one in objects.shutdowns:
        if one.metadata.name == node.metadata.name and one.status.deadline_time and one.status.start_time:
            yield LastWord(
                boot_id=one.spec.boot_id,
                written=one.status.start_time.timestamp(),
                deadline=one.status.deadline_time.timestamp(),
                cancelled=one.status.outcome is Outcome.CANCELLED,
                gone=one.gone,
            )


def _verdict(objects: Objects, name: str, boot: Boot, found: Verdict) -> Verdict:
    """Of a watchdog that its agent tells of no fact is made: what its bound proves depends on what was seen meanwhile."""
    promises = (promised(lease.metadata.annotations) for lease in objects.agents if lease.metadata.name == name)
    if not any(one and one.settings and one.boot_id == boot.id for one in promises):
        return found
    said = (_WATCHDOG if one == remarks.NO_WATCHDOG else one for one in found.reasons)
    return replace(found, reasons=tuple(said))


def _told_by_others(objects: Objects, name: str, boot: Boot, now: float) -> Iterator[Fact]:
    """What others say of it in their Leases: that they heard it, and what they read of its lease on shared storage.

    It is dated by the clocks by which they have renewed these Leases, or else those of their kubelets.
    """
    storage, nodes = StorageLeases(), {one.metadata.name: one for one in objects.nodes}
    for lease in objects.agents:
        teller, renewed = nodes.get(lease.metadata.name), _seconds(lease.spec.renew_time)
        found = hearsay.said(lease, min(now, renewed)) if renewed is not None else ()
        yield from (fact for node, fact in found if node == name)
        told = _heard(objects, teller, now) if teller else None
        storage.hear(lease.metadata.name, lease.metadata.annotations, now if told is None else told, revision=0)
    if fact := storage.of(name, boot, nodes):
        yield fact


def _policy(found: FencePolicy, fresh: float) -> Policy:
    spec = found.spec
    return Policy(
        name=found.name,
        mode=spec.mode,
        suspect_after=patience(spec.suspect_after_seconds, fresh),
        power_on=spec.power_on is PowerOn.AFTER_FAILOVER,
        remove_by_hand=spec.remove_taint is RemoveTaint.ALWAYS,
        fresh=fresh,
    )


def _devices(objects: Objects, node: LiveNode, found: FencePolicy | None, now: float) -> Iterator[Device]:
    if found is None:
        return
    every, among = policies.entries(objects.policies), Lookalikes()
    chosen = {one.metadata.name: policies.choose(one.metadata.labels, every).policy for one in objects.nodes}
    known = [entry.policy for entry in every if entry.policy]
    for other in objects.nodes:
        name = other.metadata.name
        among.put(name, lookalikes.traces(other.fence_node, chosen[name], known))

    def heard_of(name: str) -> bool:
        other, policy = objects.node(name), chosen[name]
        heard = _heard(objects, other, now) if other else None
        return heard is not None and now - heard < (policy.spec.suspect_after_seconds if policy else UNCHOSEN)

    boot = node.status.node_info.boot_id
    failing = fencer_failures.reported(found.status, node=node.metadata.name, boot_id=boot)
    for one in found.spec.fencers:
        device = Device(
            name=one.name,
            attempts=one.attempts,
            delay=float(one.delay_seconds),
            timeout=float(one.timeout_seconds),
            rival=lookalikes.refusal(node.fence_node, one, found, among, heard_of),
            unchecked=one.target_check is TargetCheck.DISABLED,
        )
        yield fencer_failures.with_reported(device, failing.get(one.name), now)


def _storm(objects: Objects, found: FencePolicy | None, name: str, boot_id: str, now: float) -> Answer:
    """As the controller that leads has told it, or else as far as the objects say."""
    if found is None:
        return Answer(allowed=False, why="no FencePolicy holds for it")
    if told := held_back.reported(found.status, node=name, now=now):
        return told
    spec = found.spec
    members, fencings = [], []
    for node in objects.nodes:
        heard = _heard(objects, node, now)
        lost = heard is None or now - heard >= spec.suspect_after_seconds
        labels = node.metadata.labels
        domain, control = labels.get(spec.domain_label, ""), any(one in labels for one in CONTROL_PLANE)
        healthy = node.ready.status == "True" and not lost
        member = Member(
            name=node.metadata.name,
            healthy=healthy,
            lost=lost,
            domain=domain,
            control_plane=control,
            etcd=ETCD in labels,
        )
        members.append(member)
        if isinstance(mark := read(node.mark), OwnerMark):
            at = _counts_from(node, mark, now)
            fencings.append(
                Fencing(
                    node=member.name,
                    boot_id=mark.boot_id,
                    domain=domain,
                    control_plane=control,
                    began=at,
                    ordered=mark.switched_off or mark.tainted,
                    failed_over=mark.tainted and not remaining.anything(_with_what_is_left(objects, node, now)),
                )
            )
        fencings += over(member.name, node.fenced, now=now, wall=now)
    view = View(members=members, fencings=fencings)
    return storms.may_fence(name, boot_id, view, policies.storm_limits(spec.limits), now)


def _with_what_is_left(objects: Objects, node: LiveNode, now: float) -> Case:
    """A Case of which nothing else is known."""
    name, claims = node.metadata.name, _bound(objects)
    pods = (pod for pod in objects.pods if pod.spec.node_name == name)
    return Case(
        name=name,
        me=SOMEBODY,
        leader=SOMEBODY,
        wall=now,
        node=None,
        policy=None,
        observed=now,
        pods=tuple(left.pod(pod, node, claims, {}, now) for pod in pods),
        attachments=tuple(left.attachment(one, {}) for one in objects.attachments if one.spec.node_name == name),
    )


def _counts_from(node: LiveNode, mark: OwnerMark, now: float) -> float:
    """As the controller has it; since when the machine has another boot no object says."""
    began = min(now, _seconds(mark.began) or now)
    dates = [one.time_added for one in node.spec.taints if like_ours(one)]
    ends = [min(now, date.timestamp()) if date else began for date in dates]
    if node.status.node_info.boot_id not in ("", mark.boot_id):
        ends.append(began)
    if mark.tainted and not ends:
        ends.append(began)
    return counts_from(began=began, ends=ends, now=now)


def _seconds(text: str) -> float | None:
    """Since 1970; None if it is no time of the API."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo else None
