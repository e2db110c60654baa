"""Pods and their volumes (pure)."""

from collections.abc import Iterator

from lastcall_lab.simulation.container_lives import ContainerLife
from lastcall_lab.simulation.rules.base import Invariant, InvariantViolation
from lastcall_lab.simulation.rules.run_facts import RunFacts
from lastcall_lab.volumes import volume_events

_VOLUMES = {
    volume_events.AccessFault.TWO_WRITERS: Invariant.ONE_WRITER,
    volume_events.AccessFault.DETACHED_IN_USE: Invariant.NO_DETACH_IN_USE,
}


def find_violations(facts: RunFacts) -> Iterator[InvariantViolation]:
    """Of identities, objects and volumes."""
    yield from _judge_identities(facts)
    yield from _judge_forgotten_pods(facts)
    for one in volume_events.find_violations(facts.run.records):
        yield InvariantViolation(
            one.at, _VOLUMES[one.fault], f"{one.volume}: {one.fault.value} ({', '.join(one.nodes)})"
        )


def _judge_identities(facts: RunFacts) -> Iterator[InvariantViolation]:
    seen: dict[tuple[str, str], list[ContainerLife]] = {}
    for life in facts.lives:
        pod = facts.run.pods[life.uid]
        if any(owner.kind == "StatefulSet" for owner in pod.metadata.owner_references or ()):
            same = seen.setdefault((pod.metadata.namespace, pod.metadata.name), [])
            other = next((one for one in same if one.uid != life.uid and one.is_alive_at(life.began)), None)
            if other:
                what = f"{pod.key} began on {life.node} while it lived on {other.node}"
                yield InvariantViolation(life.began, Invariant.ONE_IDENTITY, what)
            same.append(life)


def _judge_forgotten_pods(facts: RunFacts) -> Iterator[InvariantViolation]:
    """Only a pod that has ended may lose its object: nobody would end it, and another one would take its place."""
    for life in facts.lives:
        for one in facts.asked.get(life.uid, ()):
            if one.forgotten and life.is_alive_at(one.at):
                what = f"{facts.run.pod_name(life.uid)} was removed from the API server while it lived on {life.node}"
                yield InvariantViolation(one.at, Invariant.FORGOTTEN, what)
