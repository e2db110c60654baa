"""Whether the ``sleep`` that holds SIGTERM is as long as proxies need, and how to set it (pure).

The policy lastcall-settle adds the sleep to pods of namespaces with the label SETTLE_SECONDS, and notes it on the pod.
"""

from collections import defaultdict
from collections.abc import Iterator

from lastcall.drain.planning.drain_case import DrainCase, DrainNote, name_pods
from lastcall.drain.planning.workload_owners import find_workload
from lastcall.drain.traffic.settle_estimate import SettleEstimate, sleep_seconds
from lastcall.model.drain_facts import DrainPod
from lastcall.names import SETTLE_SECONDS, SLEEP_ADDED

_RESTARTED = ("Deployment", "StatefulSet", "DaemonSet")
"""What ``kubectl rollout restart`` accepts."""


def has_added_sleep(case: DrainCase) -> bool:
    """Whether a pod that goes has a sleep from the policy, so that a learnt settle time may lead to advice."""
    return any(_added_sleep(pod) is not None for pod in case.evicted)


def list_sleep_notes(case: DrainCase, settle: SettleEstimate) -> Iterator[DrainNote]:
    """A note for each namespace in which SIGTERM of a pod that goes is held for less than the settle time.

    A sleep that is longer than that is left as it is: a load balancer may need it. So is one that a pod's own annotation
    asks for.
    """
    needed = sleep_seconds(settle)
    short: dict[str, list[DrainPod]] = defaultdict(list)
    for pod in case.evicted:
        added = _added_sleep(pod)
        if added is not None and added < needed and SETTLE_SECONDS not in (pod.metadata.annotations or {}):
            short[pod.metadata.namespace].append(pod)
    for namespace, pods in sorted(short.items()):
        least = min(_added_sleep(pod) or 0 for pod in pods)
        yield DrainNote(
            text=f"namespace {namespace}: SIGTERM of {name_pods(pods)} is held for {least} s, and proxies need {needed} s"
            f" ({settle.source})",
            mend="; ".join([*_label_command(case, namespace, needed), *_restart_commands(case, namespace, pods)]),
        )


def _added_sleep(pod: DrainPod) -> int | None:
    """The seconds that the policy has added; None if it has added none, or if they cannot be read."""
    text = (pod.metadata.annotations or {}).get(SLEEP_ADDED, "")
    return int(text) if text.isascii() and text.isdecimal() and not pod.is_finished else None


def _label_command(case: DrainCase, namespace: str, needed: int) -> Iterator[str]:
    """Nothing if the label says as much already: then the pods are older than it."""
    found = case.facts.namespaces.get(namespace)
    said = ((found.metadata.labels if found else None) or {}).get(SETTLE_SECONDS, "")
    if not said.isdecimal() or int(said) < needed:
        yield f"kubectl label namespace {namespace} {SETTLE_SECONDS}={needed} --overwrite"


def _restart_commands(case: DrainCase, namespace: str, pods: list[DrainPod]) -> Iterator[str]:
    """Pods get another sleep only when they are made again; of other kinds a person knows how."""
    workloads = (find_workload(pod, case.facts) for pod in pods)
    found = {f"{one.kind.lower()}/{one.metadata.name}" for one in workloads if one and one.kind in _RESTARTED}
    if names := sorted(found):
        yield f"kubectl -n {namespace} rollout restart {' '.join(names)}"
