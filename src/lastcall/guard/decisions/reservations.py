"""One application gives up so many members at a time: which pods are in front of another one (pure)."""

from collections.abc import Sequence
from datetime import UTC, datetime

from lastcall.guard.decisions.owners import list_owners
from lastcall.guard.decisions.policy_choice import choose_policy
from lastcall.model.guard_facts import GuardFacts
from lastcall.model.guard_policy import GuardPolicy, HeldPod
from lastcall.model.int_or_percent import resolve_portion
from lastcall.model.pods import Pod

_NEVER = datetime.max.replace(tzinfo=UTC)


def pods_in_front(pod: Pod, policy: GuardPolicy, facts: GuardFacts) -> Sequence[HeldPod]:
    """The held pods of the same application that have taken all places before this pod; none if it may go on.

    A pod has a place from the start of its preparation until its replacement is up. Those that are gone already come
    first, then those that were asked for first. One that is gone, has no successor of its name, and whose application is
    not recorded counts for every application of the policy.
    """
    others = [one for one in policy.status.pods if one.is_reserving and one.uid != pod.metadata.uid]
    if not others:
        return ()
    uids = {one.metadata.uid for one in facts.pods} | {pod.metadata.uid}
    own = policy.find_pod(pod.metadata.uid)
    mine = (True, *_since(own)) if own and own.is_reserving else (True, _NEVER, "")
    before = [
        (place, one)
        for one in others
        if (place := (one.uid in uids, *_since(one))) < mine and _is_of_same_group(one, pod, policy, facts)
    ]
    if not before:
        return ()
    before.sort(key=lambda found: found[0])
    return [one for _, one in before] if len(before) >= _most(pod, policy, facts) else ()


def _since(one: HeldPod) -> tuple[datetime, str]:
    return (one.since or _NEVER, one.uid)


def application_of(pod: Pod, policy: GuardPolicy, facts: GuardFacts) -> str:
    """The application that the pod is a member of: the value of the label ``groupBy``, else the topmost owner's uid."""
    if policy.spec.group_by:
        return (pod.metadata.labels or {}).get(policy.spec.group_by, "")
    return list_owners(pod, facts).top_uid


def list_members(application: str, policy: GuardPolicy, facts: GuardFacts) -> Sequence[Pod]:
    """The pods of an application that the policy guards, by name."""
    return sorted(
        (
            one
            for one in facts.pods
            if one.metadata.namespace == policy.metadata.namespace
            and (choice := choose_policy(one, facts).policy) is not None
            and choice.name == policy.name
            and application_of(one, policy, facts) == application
        ),
        key=lambda one: one.metadata.name,
    )


def _most(pod: Pod, policy: GuardPolicy, facts: GuardFacts) -> int:
    """``maxUnavailable`` as a number of pods, at least one. Members are counted for a percentage alone."""
    wanted = policy.spec.max_unavailable
    whole = 0 if isinstance(wanted, int) else len(list_members(application_of(pod, policy, facts), policy, facts))
    return max(1, resolve_portion(wanted, whole, up=True))


def _is_of_same_group(one: HeldPod, pod: Pod, policy: GuardPolicy, facts: GuardFacts) -> bool:
    if one.group:
        return one.group == application_of(pod, policy, facts)
    live = next((found for found in facts.pods if found.metadata.uid == one.uid), None)
    found = live or facts.find_pod(pod.metadata.namespace, one.name)
    return found is None or application_of(found, policy, facts) == application_of(pod, policy, facts)
