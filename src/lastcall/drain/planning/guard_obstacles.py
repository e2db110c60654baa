"""GuardPolicies that hold pods of a drain beyond hope, and those that are merely asked first (pure)."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from lastcall.drain.planning.drain_case import DrainCase, DrainHolder, DrainNote, DrainObstacle, name_pods
from lastcall.guard.decisions.exemptions import is_bypassed
from lastcall.guard.decisions.point_of_no_return import describe_point_of_no_return
from lastcall.guard.decisions.policy_choice import choose_policy
from lastcall.model.drain_facts import DrainPod, pod_name
from lastcall.model.guard_facts import GuardedMetadata, GuardedNode, GuardedNodeSpec, GuardFacts
from lastcall.model.guard_policy import GuardPolicy, HeldPod, HoldLimitAction, PreparationState
from lastcall.names import GUARD_BYPASS_UNTIL, GUARD_POLICY, OUT_OF_SERVICE

_HOPELESS = (PreparationState.STALLED, PreparationState.UNHEALTHY)


class GuardedPod(NamedTuple):
    """A pod that goes only after its application has prepared, and its entry in the policy's status."""

    pod: DrainPod
    policy: GuardPolicy
    held: HeldPod | None


def find_guard_obstacles(case: DrainCase) -> Iterator[DrainObstacle]:
    """One obstacle for each guarded pod whose preparation makes no progress, with the policy's message."""
    for pod, policy, held in list_guarded_pods(case):
        if held and held.state in _HOPELESS and not _limit_lets_go(held, policy, case.now):
            yield _obstacle(pod, policy, held)


def list_guard_notes(case: DrainCase) -> Iterator[DrainNote]:
    """Pods that are asked first, by policy, and whether that can be undone; and what is odd about their policies."""
    by_policy: dict[tuple[str, str], list[GuardedPod]] = {}
    for one in list_guarded_pods(case):
        by_policy.setdefault((one.policy.metadata.namespace, one.policy.name), []).append(one)
    for (namespace, name), found in by_policy.items():
        yield DrainNote(
            text=f"{GUARD_POLICY} {namespace}/{name} is asked before the eviction of {name_pods(one.pod for one in found)}: "
            f"{describe_point_of_no_return(found[0].policy)}",
            mend=f"follow it by kubectl lastcall guard status -n {namespace}",
        )


def list_guarded_pods(case: DrainCase) -> Iterator[GuardedPod]:
    """The pods that go and that a policy guards now: none that has finished, is being deleted or is bypassed."""
    spaces: dict[str, GuardFacts] = {}
    guarded = {policy.metadata.namespace for policy in case.facts.policies}
    for pod in case.evicted:
        namespace = pod.metadata.namespace
        if namespace not in guarded or pod.is_finished or pod.metadata.deletion_timestamp is not None:
            continue
        facts = spaces.get(namespace) or spaces.setdefault(namespace, _guard_facts(case, namespace))
        policy = choose_policy(pod, facts).policy
        if policy and not _is_exempt(pod, facts, case.now):
            yield GuardedPod(pod, policy, policy.find_pod(pod.metadata.uid))


def _is_exempt(pod: DrainPod, facts: GuardFacts, now: datetime) -> bool:
    space, node = facts.namespaces.get(pod.metadata.namespace), facts.nodes.get(pod.spec.node_name)
    if space and space.is_terminating:
        return True
    if node and any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints or ()):
        return True
    return is_bypassed(pod, facts, now)


def _guard_facts(case: DrainCase, namespace: str) -> GuardFacts:
    """What the guard decides on, of one namespace."""
    space = case.facts.namespaces.get(namespace)
    return GuardFacts(
        namespaces={namespace: space} if space else {},
        nodes={
            node.name: GuardedNode(
                metadata=GuardedMetadata(name=node.name, annotations=node.metadata.annotations),
                spec=GuardedNodeSpec(taints=node.spec.taints),
            )
            for node in case.nodes
        },
        policies=tuple(policy for policy in case.facts.policies if policy.metadata.namespace == namespace),
    )


def _obstacle(pod: DrainPod, policy: GuardPolicy, held: HeldPod) -> DrainObstacle:
    namespace, name = pod_name(pod)
    said = held.message or "no reason was given"
    if held.state is PreparationState.STALLED:
        why = f"the preparation of pod {pod.key} makes no progress: {said}"
        first = "mend its application"
    else:
        why = f"the application of pod {pod.key} is short of members already: {said}"
        first = "bring its missing members back"
    return DrainObstacle(
        by=DrainHolder(kind=GUARD_POLICY, namespace=namespace, name=policy.name),
        pods=(pod_name(pod),),
        why=why,
        mend=f"{first} (kubectl lastcall guard status {name} -n {namespace}), or let the pod go without it by the "
        f"annotation {GUARD_BYPASS_UNTIL}",
    )


def _limit_lets_go(held: HeldPod, policy: GuardPolicy, now: datetime) -> bool:
    """Whether the pod is allowed to go although its application is not ready, because it was held for long."""
    seconds = policy.spec.hold_limit_seconds
    if seconds is None or policy.spec.on_limit is not HoldLimitAction.ALLOW or held.since is None:
        return False
    return now - held.since >= timedelta(seconds=seconds)
