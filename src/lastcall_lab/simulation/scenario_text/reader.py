"""A scenario from YAML, or every reason why it is none (pure).

The fields are those of Kubernetes where it has them; durations are Go's, as in all its files.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from lastcall import names
from lastcall.errors import InvalidInput
from lastcall.graceful import config
from lastcall.graceful.config import AgentConfig
from lastcall.model import decoding
from lastcall_lab.apiserver.catalog.built_in_resources import built_in_resources
from lastcall_lab.simulation.recorded_cluster import assumptions
from lastcall_lab.simulation.recorded_cluster.state_file import RecordedState
from lastcall_lab.simulation.scenario import (
    CAPACITY,
    Expectation,
    FailoverSettings,
    GuardSettings,
    NodeGroup,
    Scenario,
    ScenarioEvent,
    ScenarioWorkload,
    ScenarioWorkloadKind,
    Verb,
)
from lastcall_lab.simulation.scenario_text import sentences
from lastcall_lab.simulation.scenario_text.field_readers import (
    FieldViolations,
    Reader,
    integer_reader,
    read_name,
    read_seconds,
    read_text,
)
from lastcall_lab.simulation.scenario_text.scenario_fields import AGENT, KIND, MOST_NODES, NODES, TOP, WORKLOADS
from lastcall_lab.simulation.scenario_text.sentence_forms import ALL_NODES, HALF_OF_THE_NODES

_SHOWN = 12
_SYSTEM_CLASSES = ("system-node-critical", "system-cluster-critical")
_KINDS = {
    field: ScenarioWorkloadKind(WORKLOADS[field].attribute)
    for field in ("deployment", "statefulSet", "daemonSet", "job")
}
_NOT_FOR: Mapping[str, tuple[ScenarioWorkloadKind, ...]] = {
    "replicas": (ScenarioWorkloadKind.DAEMON_SET,),
    "requests": (ScenarioWorkloadKind.JOB,),
    "volume": (ScenarioWorkloadKind.DEPLOYMENT, ScenarioWorkloadKind.DAEMON_SET, ScenarioWorkloadKind.JOB),
    "writes": (ScenarioWorkloadKind.DEPLOYMENT, ScenarioWorkloadKind.DAEMON_SET, ScenarioWorkloadKind.JOB),
    "leader": (ScenarioWorkloadKind.DAEMON_SET, ScenarioWorkloadKind.JOB),
    "worksFor": (ScenarioWorkloadKind.DEPLOYMENT, ScenarioWorkloadKind.STATEFUL_SET, ScenarioWorkloadKind.DAEMON_SET),
}

_NEED_CONTROLLER = (
    Verb.KILL_FAILOVER,
    Verb.STOP_FAILOVER,
    Verb.CUT_FAILOVER,
    Verb.PAUSE_FAILOVER,
    Verb.CLOCK_FAILOVER,
    Verb.POLICY_SUSPECT,
    Verb.POLICY_OBSERVE,
)

_NEED_GUARD = (
    Verb.KILL_GUARD,
    Verb.STOP_GUARDS,
    Verb.APPS_STALL,
    Verb.APPS_SILENT,
    Verb.APPS_SLOW,
    Verb.APPS_FLAP,
    Verb.APPS_FORGET,
    Verb.APPS_LIE,
)

_There = tuple[tuple[NodeGroup, ...], tuple[dict[str, Any], ...], tuple[ScenarioWorkload, ...]]
"""Nodes, further objects and workloads."""


def read_scenario(data: bytes, source: str, state: RecordedState | None = None) -> Scenario:
    """The scenario in a file's bytes; InvalidInput lists every violation at once, with field, value and rule.

    With a ``state`` it happens to that cluster: the file gives no nodes and no workloads of its own.
    """
    documents = decoding.parse_documents(data, source)
    if len(documents) != 1:
        found = f"{len(documents)} documents" if documents else "empty"
        raise InvalidInput(source, [f"document: {found}: expected one {KIND}"])
    wrong = FieldViolations()
    scenario = _ScenarioReader(wrong, state).read_document(documents[0])
    if wrong.found:
        raise InvalidInput(source, wrong.found)
    assert scenario is not None
    return scenario


class _ScenarioReader:
    """Goes through one document."""

    def __init__(self, wrong: FieldViolations, state: RecordedState | None) -> None:
        self._wrong = wrong
        self._state = state

    def read_document(self, document: Any) -> Scenario | None:
        """None if there is nothing to begin with."""
        found = self._wrong.read_fields("", document, TOP)
        if not found and self._wrong.found:
            return None
        named = self._read_header(found)
        nodes, objects, workloads = (
            self._read_recorded_cluster(self._state, document, found) if self._state else self._read_own_cluster(found)
        )
        lasts = found.get("lasts", Scenario(name="").lasts)
        timeline = self._read_timeline(found.pop("timeline", {}), nodes, lasts)
        self._check_controller(timeline, found.get("failover"))
        self._check_guard(timeline, workloads, found.get("guard"))
        expect = self._read_expectations(found.pop("expect", []), workloads)
        agent = self._read_agent(found.pop("agent", AGENT))
        return Scenario(
            name=named,
            nodes=nodes,
            objects=objects,
            workloads=workloads,
            timeline=timeline,
            expect=expect,
            agent=agent,
            recorded=self._state.recorded if self._state else None,
            **found,
        )

    def _read_own_cluster(self, found: dict[str, Any]) -> _There:
        """What the file itself says that there is."""
        if "assume" in found:
            self._wrong.add("assume", found.pop("assume"), "means nothing without a cluster from a file (--state)")
        nodes = self._read_nodes(found.pop("nodes", 3))
        objects = self._read_objects(found.pop("objects", []), found.pop("classes", {}))
        return nodes, objects, self._read_workloads(found.pop("workloads", []), objects)

    def _read_recorded_cluster(
        self, state: RecordedState, document: Mapping[str, Any], found: dict[str, Any]
    ) -> _There:
        """What a cluster from a file has, with what is assumed of it."""
        for field in ("nodes", "workloads", "priorityClasses", "objects"):
            if document.get(field) is not None:
                self._wrong.add(field, document[field], "cannot be given beside a cluster from a file (--state)")
            found.pop(TOP[field].attribute, None)
        return state.nodes, (), assumptions.assumed_workloads(state, found.pop("assume", {}), self._wrong)

    def _read_header(self, found: dict[str, Any]) -> str:
        for field, attribute, right in (("apiVersion", "api_version", names.API_VERSION), ("kind", "kind", KIND)):
            value = found.pop(attribute, None)
            if value != right:
                self._wrong.found.append(
                    f"{field}: {'missing' if value is None else decoding.quote_value(value)}: must be {right}"
                )
        metadata = found.pop("metadata", None)
        if not isinstance(metadata, dict) or "name" not in metadata:
            self._wrong.found.append("metadata.name: missing: must be given")
            return ""
        return str(self._wrong.read_value("metadata.name", metadata["name"], read_name))

    def _list_items(self, at: str, value: Any) -> Iterator[tuple[str, Any]]:
        """The items of a list, each with its place."""
        if not isinstance(value, list):
            self._wrong.add(at, value, "must be a list")
            return
        for index, one in enumerate(value):
            yield f"{at}[{index}]", one

    # -- what there is -------------------------------------------------------------------------------------------------

    def _read_nodes(self, value: Any) -> tuple[NodeGroup, ...]:
        if isinstance(value, int):
            count = self._wrong.read_value("nodes", value, integer_reader(1, MOST_NODES))
            return (NodeGroup(count=count or 1),)
        found: list[NodeGroup] = []
        for at, one in self._list_items("nodes", value):
            arguments = self._wrong.read_fields(at, one, NODES)
            arguments["capacity"] = {**CAPACITY, **arguments.get("capacity", {})}
            group = NodeGroup(**arguments)
            if any(group.name == other.name for other in found):
                self._wrong.add(f"{at}.name", group.name, "is the name of another group: each needs one of its own")
            found.append(group)
        if isinstance(value, list) and not value:
            self._wrong.add("nodes", value, "must be a list that is not empty")
        return tuple(found)

    def _read_objects(self, value: Any, classes: Mapping[str, int]) -> tuple[dict[str, Any], ...]:
        known = {(one.api_version, one.kind) for one in built_in_resources()}
        found = [
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": named},
                "value": priority,
            }
            for named, priority in classes.items()
        ]
        for at, one in self._list_items("objects", value):
            if not isinstance(one, dict) or not isinstance(one.get("metadata"), dict) or "name" not in one["metadata"]:
                self._wrong.add(at, one, "must be an object with apiVersion, kind and metadata.name")
            elif (one.get("apiVersion"), one.get("kind")) not in known:
                what = f"{one.get('apiVersion')} {one.get('kind')}"
                self._wrong.add(at, what, "no kind that the lab has: custom resources cannot be given")
            else:
                found.append(one)
        return tuple(found)

    def _read_workloads(self, value: Any, objects: Sequence[Mapping[str, Any]]) -> tuple[ScenarioWorkload, ...]:
        classes = [*_SYSTEM_CLASSES, *(one["metadata"]["name"] for one in objects if one["kind"] == "PriorityClass")]
        found: list[ScenarioWorkload] = []
        for at, one in self._list_items("workloads", value):
            workload = self._read_workload(at, one)
            if workload is None:
                continue
            if workload.priority_class and workload.priority_class not in classes:
                rule = f"there is no such PriorityClass; known are {', '.join(classes)}"
                self._wrong.add(f"{at}.priorityClassName", workload.priority_class, rule)
            if any(workload.name == other.name for other in found):
                self._wrong.add(at, workload.name, "is the name of another workload: each needs one of its own")
            found.append(workload)
        return tuple(found)

    def _read_workload(self, at: str, value: Any) -> ScenarioWorkload | None:
        arguments = self._wrong.read_fields(at, value, WORKLOADS)
        named = [field for field in _KINDS if isinstance(value, dict) and value.get(field) is not None]
        if len(named) != 1:
            said = " and ".join(named) or "none of them"
            self._wrong.found.append(f"{at}: {said}: must be named by one of {', '.join(_KINDS)}")
            return None
        kind = _KINDS[named[0]]
        called = arguments.pop(kind.value, None)
        if called is None:
            return None
        for field, kinds in _NOT_FOR.items():
            if value.get(field) is not None and kind in kinds:
                self._wrong.add(f"{at}.{field}", value[field], f"means nothing for a {kind.value}")
        if value.get("writes") is not None and not value.get("volume") and kind is ScenarioWorkloadKind.STATEFUL_SET:
            self._wrong.add(f"{at}.writes", value["writes"], "needs volume: true")
        if "min_available" in arguments and "max_unavailable" in arguments:
            self._wrong.add(f"{at}.maxUnavailable", value["maxUnavailable"], "cannot be given beside minAvailable")
        return ScenarioWorkload(kind=kind, name=called, **arguments)

    def _read_agent(self, value: Any) -> AgentConfig | None:
        if not isinstance(value, dict):
            self._wrong.add("agent", value, "must be a mapping: the fields of an AgentConfiguration")
            return None
        document = {"apiVersion": names.API_VERSION, "kind": names.AGENT_CONFIGURATION, **value}
        try:
            return config.parse_config(json.dumps(document, default=str).encode(), "agent")
        except InvalidInput as error:
            self._wrong.found += [f"agent.{violation}" for violation in error.violations]
            return None

    # -- what happens, and what must hold ------------------------------------------------------------------------------

    def _read_timeline(self, value: Any, nodes: Sequence[NodeGroup], lasts: float) -> tuple[ScenarioEvent, ...]:
        if not isinstance(value, dict):
            self._wrong.add("timeline", value, "must be a mapping of times to sentences")
            return ()
        found: list[ScenarioEvent] = []
        for key, said in value.items():
            at = self._wrong.read_value(f"timeline.{key}", key, read_seconds)
            if at is not None and at >= lasts:
                self._wrong.add(f"timeline.{key}", key, "must be before the end (lasts)")
            for place, sentence in self._list_sentences(f"timeline.{key}", said):
                event = self._wrong.read_value(
                    place, sentence, _sentence_reader(partial(sentences.parse_event, at=at or 0.0))
                )
                if event is not None:
                    for problem in _unknown_nodes(event, nodes):
                        self._wrong.add(place, sentence, problem)
                    found.append(event)
        return tuple(sorted(found, key=lambda event: event.at))

    def _check_controller(self, timeline: Sequence[ScenarioEvent], failover: FailoverSettings | None) -> None:
        for event in timeline:
            if failover is None and event.verb in _NEED_CONTROLLER:
                self._wrong.add("timeline", sentences.event_sentence(event), "needs controller: lastcall")

    def _check_guard(
        self, timeline: Sequence[ScenarioEvent], workloads: Sequence[ScenarioWorkload], guard: GuardSettings | None
    ) -> None:
        if guard is not None:
            return
        for event in timeline:
            if event.verb in _NEED_GUARD:
                self._wrong.add("timeline", sentences.event_sentence(event), "needs guard: lastcall")
        for workload in workloads:
            if workload.prepares:
                self._wrong.add("workloads", workload.name, "preparesIn: needs guard: lastcall")

    def _read_expectations(self, value: Any, workloads: Sequence[ScenarioWorkload]) -> tuple[Expectation, ...]:
        known = [one.name for one in workloads]
        if self._state:
            known = [f"{one.namespace}/{one.name}" for one in workloads]
        found: list[Expectation] = []
        for place, sentence in self._list_sentences("expect", value):
            expectation = self._wrong.read_value(place, sentence, _sentence_reader(sentences.parse_expectation))
            if expectation is None:
                continue
            short = [one.partition("/")[2] for one in known]
            if expectation.subject and expectation.subject not in (*known, *short):
                rule = f"there is no workload {expectation.subject}; known are {', '.join(known) or 'none'}"
                self._wrong.add(place, sentence, rule)
            found.append(expectation)
        return tuple(found)

    def _list_sentences(self, at: str, value: Any) -> Iterator[tuple[str, Any]]:
        """One may stand alone."""
        if isinstance(value, list):
            yield from self._list_items(at, value)
        else:
            yield at, value


def _sentence_reader(reader: Reader) -> Reader:
    return lambda value: reader(read_text(value))


def _unknown_nodes(event: ScenarioEvent, groups: Sequence[NodeGroup]) -> Iterator[str]:
    """Selectors that mean no machine."""
    others = [event.other] if event.other else []
    for selector in (*event.nodes, *others):
        if selector not in (ALL_NODES, HALF_OF_THE_NODES) and selector not in set(_known_selectors(groups)):
            machines = [f"{group.node_names[0]} to {group.node_names[-1]}" for group in groups if group.numbered]
            machines += _shorten_names([group.name for group in groups if not group.numbered])
            labels = _shorten_names([one for one in dict.fromkeys(_known_selectors(groups)) if " " in one])
            yield f'"{selector}" means no machine; known are {", ".join([*machines, *labels, ALL_NODES, HALF_OF_THE_NODES])}'


def _shorten_names(names: Sequence[str]) -> list[str]:
    """A cluster may have hundreds of machines."""
    return [*names[:_SHOWN], *([f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else [])]


def _known_selectors(groups: Iterable[NodeGroup]) -> Iterator[str]:
    for group in groups:
        yield from group.node_names
        yield from (f"{label} {value}" for label, value in group.labels.items())
        dealt = {
            (label, values[n % len(values)]) for label, values in group.domains.items() for n in range(group.count)
        }
        yield from (f"{label} {value}" for label, value in sorted(dealt))
