"""Reads what decides about deletions from a file: ``kubectl get pods,namespaces,nodes,... -A -o json`` (pure)."""

from lastcall.errors import InvalidInput
from lastcall.model.budget_file import BUDGET_KIND
from lastcall.model.guard_facts import GuardedNamespace, GuardedNode, GuardFacts, WorkloadOwner
from lastcall.model.guard_policy import GuardPolicy, PreparationState, RequestedRemoval
from lastcall.model.guard_policy_rules import guard_violations
from lastcall.model.list_file import FileKind, read_list
from lastcall.model.pods import Pod
from lastcall.names import API_VERSION, GUARD_POLICY

_KINDS = {
    "Pod": FileKind("v1", Pod, namespaced=True),
    "Namespace": FileKind("v1", GuardedNamespace),
    "Node": FileKind("v1", GuardedNode),
    "PodDisruptionBudget": BUDGET_KIND,
    GUARD_POLICY: FileKind(API_VERSION, GuardPolicy, namespaced=True),
}


def read_guard_state(data: bytes, source: str) -> GuardFacts:
    """The objects of a List; all of them count as possible owners of pods. InvalidInput lists every violation."""
    found = read_list(data, source, _KINDS, rest=WorkloadOwner)
    policies = tuple(found.objects[GUARD_POLICY])
    wrong = [
        f"{GUARD_POLICY} {policy.metadata.namespace}/{policy.name}: {violation}"
        for policy in policies
        for violation in guard_violations(policy.spec)
    ]
    if wrong:
        raise InvalidInput(source, wrong)
    return GuardFacts(
        pods=tuple(found.objects["Pod"]),
        namespaces={one.metadata.name: one for one in found.objects["Namespace"]},
        nodes={one.metadata.name: one for one in found.objects["Node"]},
        owners={one.metadata.uid: one for one in found.rest if one.metadata.uid},
        budgets=tuple(found.objects["PodDisruptionBudget"]),
        policies=policies,
    )


def refuse_unknown_records(facts: GuardFacts, source: str) -> None:
    """InvalidInput for entries that this version does not know whole: in a file it is rather a mistake than an upgrade."""
    states = ", ".join(one.value for one in PreparationState if one is not PreparationState.UNKNOWN)
    requests = ", ".join(one.value for one in RequestedRemoval if one is not RequestedRemoval.UNKNOWN)
    wrong = []
    for policy in facts.policies:
        for held in policy.status.pods:
            title = f"{GUARD_POLICY} {policy.metadata.namespace}/{policy.name}: status.pods: {held.name}"
            if held.state is PreparationState.UNKNOWN:
                wrong.append(f"{title}: state: must be one of {states}")
            if held.request is RequestedRemoval.UNKNOWN:
                wrong.append(f"{title}: request: must be one of {requests}")
    if wrong:
        raise InvalidInput(source, wrong)
