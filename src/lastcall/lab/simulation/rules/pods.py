"""Pods and their volumes (pure)."""

from collections.abc import Iterator

from lastcall.lab.simulation.lives import Life
from lastcall.lab.simulation.rules.base import Rule, Violation
from lastcall.lab.simulation.rules.facts import Facts
from lastcall.lab.volumes import records

_VOLUMES = {
    records.Fault.TWO_WRITERS: Rule.ONE_WRITER,
    records.Fault.DETACHED_IN_USE: Rule.NO_DETACH_IN_USE,
}


def violations(facts: Facts) -> Iterator[Violation]:
    """Of identities, objects and volumes."""
    yield from _identities(facts)
    yield from _forgotten(facts)
    for one in records.violations(facts.run.records):
        yield Violation(one.at, _VOLUMES[one.fault], f"{one.volume}: {one.fault.value} ({', '.join(one.nodes)})")


def _identities(facts: Facts) -> Iterator[Violation]:
    seen: dict[tuple[str, str], list[Life]] = {}
    for life in facts.lives:
        pod = facts.run.pods[life.uid]
        if any(owner.kind == "StatefulSet" for owner in pod.metadata.owner_references or ()):
            same = seen.setdefault((pod.metadata.namespace, pod.metadata.name), [])
            other = next((one for one in same if one.uid != life.uid and one.lived(life.began)), None)
            if other:
                what = f"{pod.key} began on {life.node} while it lived on {other.node}"
                yield Violation(life.began, Rule.ONE_IDENTITY, what)
            same.append(life)


def _forgotten(facts: Facts) -> Iterator[Violation]:
    """Only a pod that has ended may lose its object: nobody would end it, and another one would take its place."""
    for life in facts.lives:
        for one in facts.asked.get(life.uid, ()):
            if one.forgotten and life.lived(one.at):
                what = f"{facts.run.name(life.uid)} was removed from the API server while it lived on {life.node}"
                yield Violation(one.at, Rule.FORGOTTEN, what)
