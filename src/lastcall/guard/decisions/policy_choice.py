"""Which GuardPolicy guards a pod (pure)."""

from collections.abc import Iterable

from lastcall.model.base import Facts
from lastcall.model.guard_facts import GuardedNamespace, GuardFacts
from lastcall.model.guard_policy import GuardPolicy
from lastcall.model.pods import Pod
from lastcall.names import GUARD_ANNOTATION, GUARD_ENABLED


class GuardChoice(Facts, frozen=True):
    """The policy, None if the pod is not guarded; ``warnings`` say why that may surprise."""

    policy: GuardPolicy | None = None
    warnings: tuple[str, ...] = ()


def choose_policy(pod: Pod, facts: GuardFacts) -> GuardChoice:
    """The policy that the pod's annotation names, else the first by name that selects the pod.

    An annotation that names no policy takes no pod from those that select it: a misspelt name must not end a hold.
    """
    namespace = pod.metadata.namespace
    if not facts.config.may_guard(namespace) or not _is_enabled(facts.namespaces.get(namespace)):
        return GuardChoice()
    policies = [one for one in facts.policies if one.metadata.namespace == namespace]
    named = pod.metadata.annotations.get(GUARD_ANNOTATION) if pod.metadata.annotations else None
    if not named:
        return _first_selecting(pod, policies)
    if found := next((one for one in policies if one.name == named), None):
        return GuardChoice(policy=found)
    choice = _first_selecting(pod, policies)
    missing = f"annotation {GUARD_ANNOTATION} of pod {pod.key} names GuardPolicy {named!r}, which does not exist"
    return GuardChoice(policy=choice.policy, warnings=(missing, *choice.warnings))


def _is_enabled(namespace: GuardedNamespace | None) -> bool:
    """The API server asks about pods of labelled namespaces alone; so one that is not known is one of these."""
    return namespace is None or (namespace.metadata.labels or {}).get(GUARD_ENABLED) == "true"


def _first_selecting(pod: Pod, policies: Iterable[GuardPolicy]) -> GuardChoice:
    found = [one for one in policies if one.spec.selector and one.spec.selector.selects(pod.metadata.labels or {})]
    if len(found) < 2:
        return GuardChoice(policy=found[0]) if found else GuardChoice()
    found.sort(key=lambda one: one.name)
    others = ", ".join(one.name for one in found[1:])
    doubled = f"pod {pod.key} is selected by GuardPolicy {others} too; {found[0].name} holds"
    return GuardChoice(policy=found[0], warnings=(doubled,))
