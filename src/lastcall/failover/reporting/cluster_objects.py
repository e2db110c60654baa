"""Builds a Case from the objects of a cluster alone, for people who ask without having observed it (pure).

The controller relies on its own observations, on its own clock. Here only the timestamps in the objects exist, which
other writers took from their clocks; no action is ever based on such a Case. Times are seconds since 1970.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from lastcall import names
from lastcall.failover.decisions import case_pods, remaining, replacement_tracking
from lastcall.failover.decisions.case import Case, EffectivePolicy, FencerState, NodeSnapshot
from lastcall.failover.evidence import assessment, peer_reports, remarks
from lastcall.failover.evidence.acknowledgement import acknowledgement_fact
from lastcall.failover.evidence.assessment import BootVerdict
from lastcall.failover.evidence.facts import Boot, Fact, LeaseSeen, NodeSeen, ShutdownAnnounced
from lastcall.failover.evidence.out_of_service_taint import is_like_ours
from lastcall.failover.evidence.owner_mark import OwnerMark, parse_mark
from lastcall.failover.evidence.proofs import LIVES, ProofTerms, fresh_seconds, suspect_seconds
from lastcall.failover.evidence.replacement_match import match_replacements
from lastcall.failover.evidence.storage_leases import StorageLeaseReports
from lastcall.failover.limits import duplicate_nodes, policy_choice, storms
from lastcall.failover.limits.duplicate_nodes import TraceIndex
from lastcall.failover.limits.storm_view import CONTROL_PLANE, ETCD, counts_from, past_fencings
from lastcall.failover.limits.storms import Fencing, LimitAnswer, Member, StormView
from lastcall.failover.limits.tracked_node import UNCHOSEN
from lastcall.failover.reporting import fencer_failures, held_back
from lastcall.model.base import Facts
from lastcall.model.drain_mark import read_drain_mark
from lastcall.model.fence_policy import FencePolicy, PowerOn, RemoveTaint
from lastcall.model.fencer import TargetCheck
from lastcall.model.list_file import FileKind, read_list
from lastcall.model.node_shutdown_object import NodeShutdown
from lastcall.model.observed import FailoverPod, LiveNode, ObservedLeaseMeta, WatchedAttachment, WatchedLease
from lastcall.model.shutdown import ShutdownOutcome
from lastcall.model.snapshot import NODE_LEASES, PersistentVolume
from lastcall.model.watchdog_lease import parse_promise

ELECTION = "lastcall-controller"
"""The name of the Lease of the controllers' leader election, in whichever namespace is configured."""
LAPSE = 60.0
"""Seconds after its last renewal from which no controller leads by it, whatever the clocks (its duration is 15 s)."""
SOMEBODY = "lastcall"
"""The identity of the controller where none leads."""
_WATCHDOG = (
    "its agent tells of an armed watchdog: what that proves only a controller knows that has observed it (/failover)"
)
_DAY = 86_400.0
_TICK = 1e-3


class ClusterObjects(Facts, frozen=True):
    """The objects found in a cluster; each list may be incomplete."""

    nodes: tuple[LiveNode, ...] = ()
    pods: tuple[FailoverPod, ...] = ()
    leases: tuple[WatchedLease, ...] = ()
    """Leases of kubelets only (``kube-node-lease``)."""
    agents: tuple[WatchedLease, ...] = ()
    """Leases of the nodes' agents (``lastcall-nodes``)."""
    attachments: tuple[WatchedAttachment, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    shutdowns: tuple[NodeShutdown, ...] = ()
    policies: tuple[dict[str, Any], ...] = ()
    """As found, valid or not."""
    elections: tuple[WatchedLease, ...] | None = None
    """The Leases of the controllers' leader elections; None if they were not looked for."""

    def find_node(self, name: str) -> LiveNode | None:
        """A Node by name; None if it is not there."""
        return next((one for one in self.nodes if one.metadata.name == name), None)


class _PlacedLeaseMeta(ObservedLeaseMeta, frozen=True):
    namespace: str = ""


class PlacedLease(WatchedLease, frozen=True):
    """The Lease of a node or of an election; its namespace tells which."""

    metadata: _PlacedLeaseMeta


_KINDS = {
    "Node": FileKind("v1", LiveNode),
    "Pod": FileKind("v1", FailoverPod, namespaced=True),
    "Lease": FileKind("coordination.k8s.io/v1", PlacedLease, namespaced=True),
    "VolumeAttachment": FileKind("storage.k8s.io/v1", WatchedAttachment),
    "PersistentVolume": FileKind("v1", PersistentVolume),
    "NodeShutdown": FileKind(names.API_VERSION, NodeShutdown),
    "FencePolicy": FileKind(names.API_VERSION, dict),
}


def is_election_lease(lease: PlacedLease) -> bool:
    """Whether controllers may elect their leader by it: not by a Lease of a node, whatever the node's name."""
    return lease.metadata.name == ELECTION and lease.metadata.namespace not in (NODE_LEASES, names.NODES_NAMESPACE)


def read_object_file(data: bytes, source: str) -> ClusterObjects:
    """Reads the output of ``kubectl get nodes,pods,... -A -o json|yaml``; other kinds are skipped. InvalidInput."""
    found = read_list(data, source, _KINDS).objects
    elections = tuple(one for one in found["Lease"] if is_election_lease(one))
    return ClusterObjects(
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


def no_leader_reason(objects: ClusterObjects, now: float) -> str:
    """Why nothing is done whatever the Case says: no controller leads. Empty if one leads, or if that is unknown."""
    if objects.elections is None:
        return ""
    if not objects.elections:
        return "no lastcall controller has ever led in this cluster"
    held = [one for one in objects.elections if one.spec.holder_identity]
    renewed = max((_parse_time(one.spec.renew_time) or 0.0 for one in held), default=0.0)
    return "" if now - renewed < LAPSE else "no lastcall controller leads: none has renewed the Lease of their election"


def case_from_objects(objects: ClusterObjects, name: str, now: float) -> Case:
    """A node's Case, as a controller would see it that had observed since the timestamps in the objects."""
    node = objects.find_node(name)
    if node is None:
        return Case(name=name, me=SOMEBODY, leader=SOMEBODY, wall=now, node=None, policy=None, observed=now)
    mark_text = node.mark_text
    mark = parse_mark(mark_text)
    me = mark.by if isinstance(mark, OwnerMark) else SOMEBODY
    heard, fresh = _last_heard(objects, node, now), _fresh_seconds(objects, name)
    begun = min(now, heard if heard is not None else now) - _DAY
    info = node.status.node_info
    boot = Boot(id=info.boot_id, system_uuid=info.system_uuid, since=begun) if info.boot_id else None
    facts = [*_known_facts(objects, node, heard, begun), *_peer_facts(objects, name, boot, now)] if boot else []
    choice = policy_choice.choose_policy(node.metadata.labels, policy_choice.ordered_entries(objects.policies))
    chosen = choice.policy
    claims = _bound_volumes(objects)
    pods = [pod for pod in objects.pods if pod.spec.node_name == name]
    case = Case(
        name=name,
        me=me,
        leader=me,
        wall=now,
        node=NodeSnapshot(
            boot_id=info.boot_id,
            ready=node.ready_condition.status,
            taints=node.spec.taints,
            mark_text=mark_text,
            drain=read_drain_mark(node.metadata.annotations),
        ),
        policy=_effective_policy(chosen, fresh) if chosen else None,
        no_policy=choice.why,
        observed=begun,
        heard=heard,
        boot=boot,
        verdict=_qualified_verdict(objects, name, boot, assessment.assess(boot, facts, now, ProofTerms(fresh=fresh)))
        if boot
        else None,
        held_until=assessment.fencing_held_until(boot, facts, now) if boot else None,
        gone=assessment.ended_pod_uids(boot, facts) if boot else frozenset(),
        storm=_limit_answer(objects, chosen, name, info.boot_id, now),
        devices=tuple(_fencer_states(objects, node, chosen, now)),
        pods=tuple(case_pods.case_pod(pod, node, claims, {}, now) for pod in pods),
        attachments=tuple(
            case_pods.case_attachment(one, {}) for one in objects.attachments if one.spec.node_name == name
        ),
        back_since=now if node.ready_condition.status == "True" else None,
    )
    places = match_replacements(replacement_tracking.pods_to_look_up(case), objects.pods, node=name, before={})
    return replace(case, replacements=replacement_tracking.replacement_readiness(case, places.keys()))


def _bound_volumes(objects: ClusterObjects) -> dict[tuple[str, str], str]:
    """The volume of each claim, by the claim's namespace and name."""
    return {
        (v.spec.claim_ref.namespace, v.spec.claim_ref.name): v.metadata.name
        for v in objects.volumes
        if v.spec.claim_ref
    }


def _last_heard(objects: ClusterObjects, node: LiveNode, now: float) -> float | None:
    """The last sign of life: its Lease, or the heartbeat of a Ready condition that a kubelet wrote.

    Never in the future.
    """
    signs = [one.spec.renew_time for one in objects.leases if one.metadata.name == node.metadata.name]
    if node.ready_condition.status in LIVES:
        signs.append(node.ready_condition.last_heartbeat_time)
    times = [at for sign in signs if (at := _parse_time(sign)) is not None]
    return min(now, float(int(max(times)))) if times else None


def _fresh_seconds(objects: ClusterObjects, name: str) -> float:
    lasts = (one.spec.lease_duration_seconds for one in objects.leases if one.metadata.name == name)
    return fresh_seconds(next(lasts, None))


def _known_facts(objects: ClusterObjects, node: LiveNode, heard: float | None, begun: float) -> Iterator[Fact]:
    """Manual taints and acknowledgements without a renewal are no facts: they count only if seen being added."""
    info, last = node.status.node_info, begun + _TICK if heard is None else heard
    if heard is not None:
        yield LeaseSeen(boot_id=info.boot_id, at=heard)
    yield NodeSeen(boot_id=info.boot_id, system_uuid=info.system_uuid, ready=node.ready_condition.status, at=last)
    renewed = next((one.spec.renew_time for one in objects.leases if one.metadata.name == node.metadata.name), "")
    boot = Boot(id=info.boot_id, system_uuid=info.system_uuid, since=begun)
    if word := acknowledgement_fact(node.acknowledgement_text, boot, seen=begun, renewed=(renewed, last)):
        yield word
    for one in objects.shutdowns:
        if one.metadata.name == node.metadata.name and one.status.deadline_time and one.status.start_time:
            yield ShutdownAnnounced(
                boot_id=one.spec.boot_id,
                written=one.status.start_time.timestamp(),
                deadline=one.status.deadline_time.timestamp(),
                cancelled=one.status.outcome is ShutdownOutcome.CANCELLED,
                gone=one.ended_pod_uids,
                how=one.spec.how,
            )


def _qualified_verdict(objects: ClusterObjects, name: str, boot: Boot, found: BootVerdict) -> BootVerdict:
    """No fact follows from a watchdog Lease here: what its bound proves depends on observations over time."""
    promises = (parse_promise(lease.metadata.annotations) for lease in objects.agents if lease.metadata.name == name)
    if not any(one and one.armed_timing and one.boot_id == boot.id for one in promises):
        return found
    said = (_WATCHDOG if one == remarks.NO_WATCHDOG else one for one in found.reasons)
    return replace(found, reasons=tuple(said))


def _peer_facts(objects: ClusterObjects, name: str, boot: Boot, now: float) -> Iterator[Fact]:
    """Reports of other nodes: that they heard it, and what they read of its lease on shared storage.

    They date from the renewals of the reporting Leases, or else from the signs of life of the reporters' kubelets.
    """
    storage, nodes = StorageLeaseReports(), {one.metadata.name: one for one in objects.nodes}
    for lease in objects.agents:
        teller, renewed = nodes.get(lease.metadata.name), _parse_time(lease.spec.renew_time)
        found = peer_reports.peer_facts(lease, min(now, renewed)) if renewed is not None else ()
        yield from (fact for node, fact in found if node == name)
        told = _last_heard(objects, teller, now) if teller else None
        storage.observe_lease(
            lease.metadata.name, lease.metadata.annotations, now if told is None else told, revision=0
        )
    if fact := storage.evidence_about(name, boot, nodes):
        yield fact


def _effective_policy(found: FencePolicy, fresh: float) -> EffectivePolicy:
    spec = found.spec
    return EffectivePolicy(
        name=found.name,
        mode=spec.mode,
        suspect_after=suspect_seconds(spec.suspect_after_seconds, fresh),
        power_on=spec.power_on is PowerOn.AFTER_FAILOVER,
        remove_by_hand=spec.remove_taint is RemoveTaint.ALWAYS,
        fresh=fresh,
    )


def _fencer_states(
    objects: ClusterObjects, node: LiveNode, found: FencePolicy | None, now: float
) -> Iterator[FencerState]:
    if found is None:
        return
    every, among = policy_choice.ordered_entries(objects.policies), TraceIndex()
    chosen = {
        one.metadata.name: policy_choice.choose_policy(one.metadata.labels, every).policy for one in objects.nodes
    }
    known = [entry.policy for entry in every if entry.policy]
    for other in objects.nodes:
        name = other.metadata.name
        among.update_node(name, duplicate_nodes.node_traces(other.fence_node, chosen[name], known))

    def heard_of(name: str) -> bool:
        other, policy = objects.find_node(name), chosen[name]
        heard = _last_heard(objects, other, now) if other else None
        return heard is not None and now - heard < (policy.spec.suspect_after_seconds if policy else UNCHOSEN)

    boot = node.status.node_info.boot_id
    failing = fencer_failures.parse_failures(found.status, node=node.metadata.name, boot_id=boot)
    for one in found.spec.fencers:
        device = FencerState(
            name=one.name,
            attempts=one.attempts,
            delay=float(one.delay_seconds),
            timeout=float(one.timeout_seconds),
            rival=duplicate_nodes.fencer_refusal(node.fence_node, one, found, among, heard_of),
            unchecked=one.target_check is TargetCheck.DISABLED,
        )
        yield fencer_failures.with_reported_failure(device, failing.get(one.name), now)


def _limit_answer(
    objects: ClusterObjects, found: FencePolicy | None, name: str, boot_id: str, now: float
) -> LimitAnswer:
    """The limit that the leading controller reported, or else as far as the objects show."""
    if found is None:
        return LimitAnswer(allowed=False, why="no FencePolicy applies to it")
    if told := held_back.parse_held_back(found.status, node=name, now=now):
        return told
    spec = found.spec
    members, fencings = [], []
    for node in objects.nodes:
        heard = _last_heard(objects, node, now)
        lost = heard is None or now - heard >= spec.suspect_after_seconds
        labels = node.metadata.labels
        domain, control = labels.get(spec.domain_label, ""), any(one in labels for one in CONTROL_PLANE)
        healthy = node.ready_condition.status == "True" and not lost
        member = Member(
            name=node.metadata.name,
            healthy=healthy,
            lost=lost,
            domain=domain,
            control_plane=control,
            etcd=ETCD in labels,
        )
        members.append(member)
        if isinstance(mark := parse_mark(node.mark_text), OwnerMark):
            at = _counts_from(node, mark, now)
            fencings.append(
                Fencing(
                    node=member.name,
                    boot_id=mark.boot_id,
                    domain=domain,
                    control_plane=control,
                    began=at,
                    ordered=mark.switched_off or mark.tainted,
                    failed_over=mark.tainted
                    and not remaining.has_anything_to_remove(_case_of_objects_left(objects, node, now)),
                )
            )
        fencings += past_fencings(member.name, node.fencing_history_text, now=now, wall=now)
    view = StormView(members=members, fencings=fencings)
    return storms.may_fence(name, boot_id, view, policy_choice.storm_limits(spec.limits), now)


def _case_of_objects_left(objects: ClusterObjects, node: LiveNode, now: float) -> Case:
    """A Case that only holds what remains on the node."""
    name, claims = node.metadata.name, _bound_volumes(objects)
    pods = (pod for pod in objects.pods if pod.spec.node_name == name)
    return Case(
        name=name,
        me=SOMEBODY,
        leader=SOMEBODY,
        wall=now,
        node=None,
        policy=None,
        observed=now,
        pods=tuple(case_pods.case_pod(pod, node, claims, {}, now) for pod in pods),
        attachments=tuple(
            case_pods.case_attachment(one, {}) for one in objects.attachments if one.spec.node_name == name
        ),
    )


def _counts_from(node: LiveNode, mark: OwnerMark, now: float) -> float:
    """As the controller computes it; no object tells since when the machine has another boot."""
    began = min(now, _parse_time(mark.began) or now)
    dates = [one.time_added for one in node.spec.taints if is_like_ours(one)]
    ends = [min(now, date.timestamp()) if date else began for date in dates]
    if node.status.node_info.boot_id not in ("", mark.boot_id):
        ends.append(began)
    if mark.tainted and not ends:
        ends.append(began)
    return counts_from(began=began, ends=ends, now=now)


def _parse_time(text: str) -> float | None:
    """Seconds since 1970; None if it is no API timestamp."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo else None
