"""Completion indexes of an Indexed Job, in pods and in the status (``job/indexed_job_utils.go``)."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lastcall_lab.controllers.framework.view import Object

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"
_VARIABLE = "JOB_COMPLETION_INDEX"
_LONGEST_PREFIX = 58


def parse_indexes(text: str, completions: int) -> set[int]:
    """Parses ``0-2,5``; keeps numbers below ``completions`` and ignores invalid parts."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found |= set(range(int(first), min(int(last or first), completions - 1) + 1))
    return found


def format_indexes(indexes: Collection[int]) -> str:
    """Formats the numbers for the status: runs of three and more get a dash."""
    return ",".join(_format_run(first, last) for first, last in _index_runs(sorted(indexes)))


def _index_runs(ordered: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for position, index in enumerate(ordered):
        if position + 1 == len(ordered) or ordered[position + 1] != index + 1:
            yield ordered[start], index
            start = position + 1


def _format_run(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first}-{last}" if last > first + 1 else f"{first},{last}"


def index_of(pod: Object, completions: int) -> int | None:
    """The pod's index; None if absent or out of range."""
    said = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    return int(said) if said.isdecimal() and int(said) < completions else None


def index_failure_count(pod: Object, *, ignored: bool) -> int:
    """Failures of the index before this pod was created; ``ignored``: including those that the policy ignores."""
    return sum(_annotation_count(pod, name) for name in (FAILURES, *([IGNORED] if ignored else [])))


def _annotation_count(pod: Object, annotation: str) -> int:
    said = (pod["metadata"].get("annotations") or {}).get(annotation, "")
    return int(said) if said.isdecimal() else 0


def pending_indexes(completions: int, taken: Collection[int], count: int) -> list[int]:
    """The first indexes that need a pod (``firstPendingIndexes``)."""
    free = (index for index in range(completions) if index not in taken)
    return [index for index, _ in zip(free, range(count), strict=False)]


def success_policy_reason(policy: Mapping[str, Any] | None, completions: int, succeeded: Collection[int]) -> str:
    """Why the successPolicy is met although not all indexes succeeded; empty if it is not (KEP-3998)."""
    for number, rule in enumerate((policy or {}).get("rules") or ()):
        named = rule.get("succeededIndexes")
        wanted = parse_indexes(named, completions) if named is not None else None
        met = len(succeeded if wanted is None else wanted.intersection(succeeded))
        if (wanted and met == len(wanted)) or (
            rule.get("succeededCount") is not None and wanted != set() and met >= rule["succeededCount"]
        ):
            return f"Matched rules at index {number}" if succeeded else ""
    return ""


def mark_index(pod: Object, job: str, index: int, before: Mapping[str, int] | None) -> None:
    """Assigns an index to a pod. ``before`` are the failures of the index, None without backoffLimitPerIndex."""
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["annotations"][INDEX] = metadata["labels"][INDEX] = str(index)
    metadata["annotations"] |= {name: str(count) for name, count in (before or {}).items()}
    suffix = f"-{index}-"
    metadata["generateName"] = job[: _LONGEST_PREFIX - len(suffix)] + suffix
    spec["hostname"] = f"{job}-{index}"
    for container in _pod_containers(spec):
        variables = container.setdefault("env", [])
        if not any(one["name"] == _VARIABLE for one in variables):
            variables.append(
                {"name": _VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}}
            )


def _pod_containers(spec: Object) -> Iterable[Object]:
    return [*(spec.get("initContainers") or ()), *spec["containers"]]
