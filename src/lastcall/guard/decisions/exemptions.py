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
    return (
        _user_exemption(removal, facts.config)
        or _pod_exemption(removal, pod)
        or _place_exemption(pod, facts)
        or _owner_exemption(pod, facts)
        or (Exemption.BYPASS if is_bypassed(pod, facts, now) else None)
        or (Exemption.NODE_SHUTDOWN if _is_shutdown_agent(removal, pod, facts) else None)
    )


def find_request_exemption(removal: Removal, config: GuardConfig) -> Exemption | None:
    """The first exemption that the request itself shows, for which nothing else has to be read."""
    return _user_exemption(removal, config) or (_pod_exemption(removal, removal.pod) if removal.pod else None)


def is_bypassed(pod: Pod, facts: GuardFacts, now: datetime) -> bool:
    """Whether a person allows every deletion of the pod now."""
    ends = [_read_time(text) for _, _, text in _bypass_annotations(pod, facts)]
    return any(until and now < until for until in ends)


def bypass_warnings(pod: Pod, facts: GuardFacts, now: datetime) -> Iterator[str]:
    """Bypass annotations with a mistake in them, for which they do not count, or with a time that may be one."""
    for kind, name, text in _bypass_annotations(pod, facts):
        until, title = _read_time(text), f"{kind} {name}"
        if until is None:
            yield f"annotation {GUARD_BYPASS_UNTIL} of {title} does not count: {text!r} is not an RFC 3339 time"
        elif until - now > LONG_BYPASS:
            yield f"annotation {GUARD_BYPASS_UNTIL} of {title} allows deletions for more than a year: until {text!r}"


def _user_exemption(removal: Removal, config: GuardConfig) -> Exemption | None:
    if removal.user.username == config.releaser:
        return Exemption.RELEASER
    return Exemption.KUBELET if removal.user.username.startswith(KUBELET) else None


def _pod_exemption(removal: Removal, pod: Pod) -> Exemption | None:
    if removal.precondition and removal.precondition != pod.metadata.uid:
        return Exemption.PRECONDITION
    if pod.metadata.deletion_timestamp is not None:
        return Exemption.TERMINATING
    if pod.is_finished:
        return Exemption.FINISHED
    if pod.status.phase == "Pending" and not pod.spec.node_name:
        return Exemption.UNSCHEDULED
    return Exemption.MIRROR if MIRROR_ANNOTATION in (pod.metadata.annotations or ()) else None


def _place_exemption(pod: Pod, facts: GuardFacts) -> Exemption | None:
    namespace = facts.namespaces.get(pod.metadata.namespace)
    if namespace and namespace.is_terminating:
        return Exemption.NAMESPACE
    if not pod.spec.node_name:
        return None
    node = facts.nodes.get(pod.spec.node_name)
    if node is None:
        return Exemption.NO_NODE
    is_off = any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints) if node.spec.taints else False
    return Exemption.OUT_OF_SERVICE if is_off else None


def _owner_exemption(pod: Pod, facts: GuardFacts) -> Exemption | None:
    chain = list_owners(pod, facts)
    if chain.missing:
        return Exemption.OWNER_GONE
    if chain.deleted_owner:
        return Exemption.OWNER_DELETED
    workload = chain.workload
    return Exemption.SCALED_TO_ZERO if workload and workload.spec and workload.spec.replicas == 0 else None


def _bypass_annotations(pod: Pod, facts: GuardFacts) -> list[tuple[str, str, str]]:
    """Kind and name of what is annotated, and the annotation."""
    namespace, node = facts.namespaces.get(pod.metadata.namespace), facts.nodes.get(pod.spec.node_name)
    found = []
    if text := _bypass_annotation(pod.metadata):
        found.append(("pod", pod.key, text))
    if namespace and (text := _bypass_annotation(namespace.metadata)):
        found.append(("namespace", pod.metadata.namespace, text))
    if node and (text := _bypass_annotation(node.metadata)):
        found.append(("node", pod.spec.node_name, text))
    return found


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
