"""The fields of a scenario's YAML: where each goes, how it is read, and what it is (pure)."""

from collections.abc import Mapping
from typing import Any

from lastcall import names
from lastcall.manifests.guard_webhooks import FAIL, IGNORE
from lastcall_lab.simulation.scenario import (
    CAPACITY,
    FailoverSettings,
    GuardSettings,
    LeaderSettings,
    ScenarioShutdownManager,
)
from lastcall_lab.simulation.scenario_text.field_readers import (
    FieldRule,
    FieldViolations,
    Reader,
    Table,
    integer_reader,
    list_reader,
    mapping_reader,
    read_flag,
    read_name,
    read_portion,
    read_quantity,
    read_rate,
    read_seconds,
    read_text,
    seconds_or_word,
)

KIND = "Scenario"
AGENT = {"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s"}
"""The agent's configuration if none is given: the seconds that the documentation of Kubernetes takes as its example."""

NEVER = "never"
LASTCALL = "lastcall"
MOST_NODES = 5000
_MOST_PODS = 100_000


def _read_manager(value: Any) -> ScenarioShutdownManager:
    known = [one.value for one in ScenarioShutdownManager]
    if value not in known:
        raise ValueError(f"must be {', '.join(known[:-1])} or {known[-1]}")
    return ScenarioShutdownManager(value)


def _read_as_is(value: Any) -> Any:
    return value


def _read_controller(value: Any) -> FailoverSettings:
    if value == LASTCALL:
        return FailoverSettings()
    wrong = FieldViolations()
    arguments = wrong.read_fields("controller", value, CONTROLLER)
    if wrong.found:
        raise ValueError("; ".join(wrong.found))
    return FailoverSettings(**arguments)


def _bounded_reader(reader: Reader, least: float, most: float, words: str) -> Reader:
    def read(value: Any) -> Any:
        meant = reader(value)
        if not least <= meant <= most:
            raise ValueError(f"must be {words}")
        return meant

    return read


CONTROLLER: Table = {
    "replicas": FieldRule("replicas", integer_reader(1, 5), "of the controller; `1`"),
    "bmc": FieldRule(
        "bmc", read_flag, "whether machines have BMCs; without, only what they themselves do is proof; `true`"
    ),
    "suspectAfter": FieldRule(
        "suspect_after",
        _bounded_reader(read_seconds, 1, 3600, "1s to 1h"),
        "how long a node is silent before it is suspected; `40s`",
    ),
    "powerOn": FieldRule(
        "power_on", read_flag, "whether a machine is switched on again when nothing is left to force; `false`"
    ),
    "minHealthy": FieldRule("min_healthy", read_portion, "so many machines are healthy, or none is fenced; `51%`"),
    "perDomain": FieldRule(
        "per_domain", integer_reader(1, MOST_NODES), "machines of a failure domain that are fenced at a time; `1`"
    ),
    "perHour": FieldRule("per_hour", integer_reader(1, MOST_NODES), "machines that are fenced within an hour; `3`"),
    "domainLabel": FieldRule(
        "domain_label", read_text, "the label that names failure domains; `topology.kubernetes.io/zone`"
    ),
    "settle": FieldRule("settle", read_seconds, "how long the controller does not trust its view after an error; `1m`"),
}
"""The fields of the failover controller: what its FencePolicy says."""


def _read_failure_policy(value: Any) -> str:
    if value not in (FAIL, IGNORE):
        raise ValueError(f"must be {FAIL} or {IGNORE}")
    return str(value)


def _read_guard(value: Any) -> GuardSettings:
    if value == LASTCALL:
        return GuardSettings()
    wrong = FieldViolations()
    arguments = wrong.read_fields("guard", value, GUARD)
    if wrong.found:
        raise ValueError("; ".join(wrong.found))
    return GuardSettings(**arguments)


GUARD: Table = {
    "replicas": FieldRule("replicas", integer_reader(1, 5), "of the guard; `2`"),
    "failurePolicy": FieldRule(
        "failure_policy",
        _read_failure_policy,
        "what becomes of a request that no replica answers: `Fail` or `Ignore`; `Fail`",
    ),
}
"""The fields of the guard."""

TOP: Table = {
    "apiVersion": FieldRule("api_version", _read_as_is, f"`{names.API_VERSION}`"),
    "kind": FieldRule("kind", _read_as_is, f"`{KIND}`"),
    "metadata": FieldRule("metadata", _read_as_is, "`name`: of the scenario"),
    "description": FieldRule("description", read_text, "a sentence for those who read the report"),
    "nodes": FieldRule("nodes", _read_as_is, "a number of machines, or a list of groups; `3`"),
    "priorityClasses": FieldRule(
        "classes", mapping_reader(integer_reader(-(2**31), 10**9)), "name and value of each PriorityClass"
    ),
    "objects": FieldRule(
        "objects", _read_as_is, "further objects of the Kubernetes API, as `kubectl apply` takes them"
    ),
    "workloads": FieldRule("workloads", _read_as_is, "a list of them"),
    "agent": FieldRule(
        "agent",
        _read_as_is,
        "the fields of an [AgentConfiguration](configuration.md); "
        + ", ".join(f"`{field}: {value}`" for field, value in AGENT.items()),
    ),
    "shutdownManager": FieldRule(
        "manager",
        _read_manager,
        "who ends the pods: `lastcall` with the lab's kubelet in one process; `lastcall-beside-kubelet`, which stops the"
        " kubelet as on a real cluster; `kubelet` or `none`; `lastcall`",
    ),
    "controller": FieldRule(
        "failover", _read_controller, "`lastcall`, or a mapping of the fields below: who fails nodes over; nobody"
    ),
    "guard": FieldRule(
        "guard", _read_guard, "`lastcall`, or a mapping of the fields below: who guards the pods of workloads; nobody"
    ),
    "propagationDelay": FieldRule(
        "propagation", read_seconds, "how much later than the API server a node knows of endpoints; `500ms`"
    ),
    "bootsIn": FieldRule("boot", read_seconds, "from power on to the kubelet's start; `30s`"),
    "assume": FieldRule("assume", _read_as_is, "with `--state`: what its containers do; a mapping of the fields below"),
    "timeline": FieldRule("timeline", _read_as_is, "what happens: one sentence or a list of them for each time"),
    "lasts": FieldRule("lasts", read_seconds, "when it is over; `10m`"),
    "expect": FieldRule("expect", _read_as_is, "what must hold: a list of sentences"),
}
"""The fields of a scenario."""

NODES: Table = {
    "name": FieldRule("name", read_name, "machines are called `NAME-1`, `NAME-2` and so on; `node`"),
    "count": FieldRule("count", integer_reader(1, MOST_NODES), "how many; `3`"),
    "domains": FieldRule(
        "domains", mapping_reader(list_reader(read_text)), "a label and its values, which are dealt out in turn"
    ),
    "labels": FieldRule("labels", mapping_reader(read_text), "which all of them have"),
    "capacity": FieldRule(
        "capacity", mapping_reader(read_quantity), f"of each; {', '.join(f'{k} {v}' for k, v in CAPACITY.items())}"
    ),
    "delayLimit": FieldRule(
        "delay_limit",
        read_seconds,
        "what a drop-in of others limits logind's delay to, whatever the agent asks for; there is none",
    ),
}
"""The fields of a group of machines."""


def _read_leader(value: Any) -> LeaderSettings:
    if value is True:
        return LeaderSettings()
    wrong = FieldViolations()
    arguments = wrong.read_fields("leader", value, LEADER)
    if wrong.found:
        raise ValueError("; ".join(wrong.found))
    return LeaderSettings(**arguments)


LEADER: Table = {
    "handover": FieldRule("handover", read_seconds, "how long it takes, in the preStop hook; `1s`"),
    "election": FieldRule("election", read_seconds, "how long it takes until another leads, without a handover; `10s`"),
}

_BEHAVIOUR: Table = {
    "startsIn": FieldRule("starts", read_seconds, "from the order to start a container until it runs; `5s`"),
    "readyIn": FieldRule("ready", read_seconds, "from then until its probes succeed; `5s`"),
    "endsIn": FieldRule(
        "ends", seconds_or_word(NEVER), f"from SIGTERM to its end; `2s`, `{NEVER}` if it ignores SIGTERM"
    ),
    "preStop": FieldRule("pre_stop", read_seconds, "how long a preStop hook takes that does not say it; `5s`"),
    "drains": FieldRule("drains", read_flag, "whether it goes on answering between SIGTERM and its end; true"),
}

ASSUMED: Mapping[str, Any] = {"starts": 5.0, "ready": 5.0, "ends": 2.0, "pre_stop": 5.0, "drains": True}
"""What containers of a recorded cluster do if nobody says it."""

ASSUME: Table = {
    **_BEHAVIOUR,
    "byWorkload": FieldRule(
        "by_workload", mapping_reader(_read_as_is), "the same for single workloads, by NAME or NAMESPACE/NAME"
    ),
    "requests": FieldRule(
        "requests",
        mapping_reader(read_rate),
        "how many requests the clients of a Service make, by NAME or NAMESPACE/NAME",
    ),
}
"""What is assumed of a recorded cluster."""

BY_WORKLOAD: Table = _BEHAVIOUR

WORKLOADS: Table = {
    "deployment": FieldRule("Deployment", read_name, "its name, if it is a Deployment"),
    "statefulSet": FieldRule("StatefulSet", read_name, "its name, if it is a StatefulSet"),
    "daemonSet": FieldRule("DaemonSet", read_name, "its name, if it is a DaemonSet"),
    "job": FieldRule("Job", read_name, "its name, if it is a Job"),
    "namespace": FieldRule("namespace", read_name, "where it is; `default`"),
    "replicas": FieldRule("replicas", integer_reader(0, _MOST_PODS), "how many pods; `1`"),
    "priorityClassName": FieldRule(
        "priority_class", read_text, "one of `priorityClasses`, or one that every cluster has"
    ),
    "terminationGracePeriodSeconds": FieldRule("grace", integer_reader(0, 10**6), "as a pod has it; `30`"),
    "startsIn": FieldRule("starts", read_seconds, "from the order to start its container until it runs; `1s`"),
    "readyIn": FieldRule("ready", read_seconds, "from then until it is ready; `1s`"),
    "preStop": FieldRule("pre_stop", read_seconds, "how long its preStop hook takes; it has none"),
    "endsIn": FieldRule(
        "ends", seconds_or_word(NEVER), f"from SIGTERM to its end; `1s`, `{NEVER}` if it ignores SIGTERM"
    ),
    "drains": FieldRule("drains", read_flag, "whether it goes on answering between SIGTERM and its end; `true`"),
    "requests": FieldRule("requests", read_rate, "how many its clients make to its Service, such as `20/s`"),
    "volume": FieldRule("volume", read_flag, "of a StatefulSet: whether each pod has a volume; `false`"),
    "writes": FieldRule("writes", read_rate, "of each pod to its volume, such as `1/s`"),
    "minAvailable": FieldRule(
        "min_available", read_portion, "of its PodDisruptionBudget: a number of pods or a percentage"
    ),
    "maxUnavailable": FieldRule(
        "max_unavailable", read_portion, "of its PodDisruptionBudget: a number of pods or a percentage"
    ),
    "leader": FieldRule(
        "leader", _read_leader, "`true`, or how long a `handover` (`1s`) and an `election` (`10s`) take"
    ),
    "cpu": FieldRule("cpu", read_quantity, "that each pod requests; `100m`"),
    "memory": FieldRule("memory", read_quantity, "that each pod requests; `64Mi`"),
    "preparesIn": FieldRule(
        "prepares", read_seconds, "it is guarded: until its application has moved the work of a pod; nobody guards it"
    ),
    "worksFor": FieldRule("lives", read_seconds, "of a Job: how long a pod works; for ever"),
}
"""The fields of a workload."""
