"""Deletions of guarded pods that are allowed whatever the application says (pure).

In each of them a refusal would help nobody, or would leave an object for ever. The order is that of their cost.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import Enum

import msgspec

from lastcall.guard.decisions.owners import list_owners
from lastcall.model.admission import Removal
from lastcall.model.guard_config import GuardConfig
from lastcall.model.guard_facts import GuardedMetadata, GuardFacts
from lastcall.model.pods import ObjectMetadata, Pod
from lastcall.model.shutdown_node import read_mark
from lastcall.names import GUARD_BYPASS_UNTIL, MIRROR_ANNOTATION, OUT_OF_SERVICE

KUBELET = "system:node:"
"""How the names of kubelets begin. A kubelet's DELETE that is refused leaves a terminated pod's object for ever."""

BOUND_NODE = "authentication.kubernetes.io/node-name"
"""The node to which the token of a service account is bound, in the user's extra fields."""

LONG_BYPASS = timedelta(days=366)
"""A bypass that ends later is probably a mistake, so whoever asks is told of it."""


class Exemption(Enum):
    """Why a deletion is allowed, in the words of the audit log."""

    RELEASER = "releaser"
    """The guard deletes the pod itself."""
    KUBELET = "kubelet"
    PRECONDITION = "precondition"
    """The request is for another pod of this name, and the API server will refuse it."""
    TERMINATING = "terminating"
    FINISHED = "finished"
    UNSCHEDULED = "unscheduled"
    MIRROR = "mirror"
    """The pod mirrors a static pod, which its deletion does not end."""
    NAMESPACE = "namespace"
    """The pod's Namespace is being deleted."""
    NO_NODE = "no-node"
    OUT_OF_SERVICE = "out-of-service"
    """The pod's node has the taint, which says that its machine is off: by a person, or by a proof."""
    OWNER_GONE = "owner-gone"
    OWNER_DELETED = "owner-deleted"
    SCALED_TO_ZERO = "scaled-to-zero"
    BYPASS = "bypass"
    """A person allows it for a time."""
    NODE_SHUTDOWN = "node-shutdown"
    """The pod's node shuts down, and the deadline wins."""


def find_exemption(removal: Removal, pod: Pod, facts: GuardFacts, now: datetime) -> Exemption | None:
    """The first exemption that applies; None if the application decides."""
    return next(_list_exemptions(removal, pod, facts, now), None)


def find_request_exemption(removal: Removal, config: GuardConfig) -> Exemption | None:
    """The first exemption that the request itself shows, for which nothing else has to be read."""
    found = _user_exemptions(removal, config)
    return next(found, None) or (next(_pod_exemptions(removal, removal.pod), None) if removal.pod else None)


def is_bypassed(pod: Pod, facts: GuardFacts, now: datetime) -> bool:
    """Whether a person allows every deletion of the pod now."""
    return any(True for _ in _bypass_exemptions(pod, facts, now))


def bypass_warnings(pod: Pod, facts: GuardFacts, now: datetime) -> Iterator[str]:
    """Bypass annotations with a mistake in them, for which they do not count, or with a time that may be one."""
    for kind, name, text in _bypass_annotations(pod, facts):
        until, title = _read_time(text), f"{kind} {name}"
        if until is None:
            yield f"annotation {GUARD_BYPASS_UNTIL} of {title} does not count: {text!r} is not an RFC 3339 time"
        elif until - now > LONG_BYPASS:
            yield f"annotation {GUARD_BYPASS_UNTIL} of {title} allows deletions for more than a year: until {text!r}"


def _list_exemptions(removal: Removal, pod: Pod, facts: GuardFacts, now: datetime) -> Iterator[Exemption]:
    yield from _user_exemptions(removal, facts.config)
    yield from _pod_exemptions(removal, pod)
    yield from _place_exemptions(pod, facts)
    yield from _owner_exemptions(pod, facts)
    yield from _bypass_exemptions(pod, facts, now)
    if _is_shutdown_agent(removal, pod, facts):
        yield Exemption.NODE_SHUTDOWN


def _user_exemptions(removal: Removal, config: GuardConfig) -> Iterator[Exemption]:
    if removal.user.username == config.releaser:
        yield Exemption.RELEASER
    if removal.user.username.startswith(KUBELET):
        yield Exemption.KUBELET


def _pod_exemptions(removal: Removal, pod: Pod) -> Iterator[Exemption]:
    if removal.precondition and removal.precondition != pod.metadata.uid:
        yield Exemption.PRECONDITION
    if pod.metadata.deletion_timestamp is not None:
        yield Exemption.TERMINATING
    if pod.is_finished:
        yield Exemption.FINISHED
    if pod.status.phase == "Pending" and not pod.spec.node_name:
        yield Exemption.UNSCHEDULED
    if MIRROR_ANNOTATION in (pod.metadata.annotations or {}):
        yield Exemption.MIRROR


def _place_exemptions(pod: Pod, facts: GuardFacts) -> Iterator[Exemption]:
    namespace = facts.namespaces.get(pod.metadata.namespace)
    if namespace and namespace.is_terminating:
        yield Exemption.NAMESPACE
    if not pod.spec.node_name:
        return
    node = facts.nodes.get(pod.spec.node_name)
    if node is None:
        yield Exemption.NO_NODE
    elif any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints or ()):
        yield Exemption.OUT_OF_SERVICE


def _owner_exemptions(pod: Pod, facts: GuardFacts) -> Iterator[Exemption]:
    chain = list_owners(pod, facts)
    if chain.missing:
        yield Exemption.OWNER_GONE
    if chain.deleted_owner:
        yield Exemption.OWNER_DELETED
    workload = chain.workload
    if workload and workload.spec and workload.spec.replicas == 0:
        yield Exemption.SCALED_TO_ZERO


def _bypass_exemptions(pod: Pod, facts: GuardFacts, now: datetime) -> Iterator[Exemption]:
    for _, _, text in _bypass_annotations(pod, facts):
        until = _read_time(text)
        if until and now < until:
            yield Exemption.BYPASS


def _bypass_annotations(pod: Pod, facts: GuardFacts) -> Iterator[tuple[str, str, str]]:
    """Kind and name of what is annotated, and the annotation."""
    namespace, node = facts.namespaces.get(pod.metadata.namespace), facts.nodes.get(pod.spec.node_name)
    if text := _bypass_annotation(pod.metadata):
        yield "pod", pod.key, text
    if namespace and (text := _bypass_annotation(namespace.metadata)):
        yield "namespace", pod.metadata.namespace, text
    if node and (text := _bypass_annotation(node.metadata)):
        yield "node", pod.spec.node_name, text


def _bypass_annotation(metadata: ObjectMetadata | GuardedMetadata) -> str:
    return metadata.annotations.get(GUARD_BYPASS_UNTIL, "") if metadata.annotations else ""


def _read_time(text: str) -> datetime | None:
    try:
        found = msgspec.convert(text, datetime)
    except msgspec.ValidationError:
        return None
    return found if found.tzinfo else None


def _is_shutdown_agent(removal: Removal, pod: Pod, facts: GuardFacts) -> bool:
    """Whether the agent of the pod's node asks, by a token of that node, while the node's shutdown is recorded."""
    node = facts.nodes.get(pod.spec.node_name)
    own = (removal.user.extra or {}).get(BOUND_NODE, ())
    return bool(
        node
        and removal.user.username == facts.config.agent_user
        and pod.spec.node_name in own
        and read_mark(node.metadata.annotations) is not None
    )
