"""The fields of a scenario's YAML: where each goes, how it is read, and what it is (pure)."""

from collections.abc import Mapping
from typing import Any

from lastcall import names
from lastcall.lab.simulation.scenario import CAPACITY, Failover, Leader, Manager
from lastcall.lab.simulation.wording.fields import (
    Field,
    Reader,
    Table,
    Violations,
    flag,
    list_of,
    mapping_of,
    name,
    portion,
    quantity,
    rate,
    seconds,
    seconds_or,
    text,
    whole,
)

KIND = "Scenario"
AGENT = {"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s"}
"""The agent's configuration if none is given: the seconds that the documentation of Kubernetes takes as its example."""

NEVER = "never"
LASTCALL = "lastcall"
MOST_NODES = 5000
_MOST_PODS = 100_000


def _manager(value: Any) -> Manager:
    known = [one.value for one in Manager]
    if value not in known:
        raise ValueError(f"must be {', '.join(known[:-1])} or {known[-1]}")
    return Manager(value)


def _as_is(value: Any) -> Any:
    return value


def _controller(value: Any) -> Failover:
    if value == LASTCALL:
        return Failover()
    wrong = Violations()
    arguments = wrong.fields("controller", value, CONTROLLER)
    if wrong.found:
        raise ValueError("; ".join(wrong.found))
    return Failover(**arguments)


def _between(reader: Reader, least: float, most: float, words: str) -> Reader:
    def read(value: Any) -> Any:
        meant = reader(value)
        if not least <= meant <= most:
            raise ValueError(f"must be {words}")
        return meant

    return read


CONTROLLER: Table = {
    "replicas": Field("replicas", whole(1, 5), "of the controller; `1`"),
    "bmc": Field("bmc", flag, "whether machines have BMCs; without, only what they themselves do is proof; `true`"),
    "suspectAfter": Field(
        "suspect_after",
        _between(seconds, 1, 3600, "1s to 1h"),
        "how long a node is silent before it is suspected; `40s`",
    ),
    "powerOn": Field("power_on", flag, "whether a machine is switched on again when nothing is left to force; `false`"),
    "minHealthy": Field("min_healthy", portion, "so many machines are healthy, or none is fenced; `51%`"),
    "perDomain": Field(
        "per_domain", whole(1, MOST_NODES), "machines of a failure domain that are fenced at a time; `1`"
    ),
    "perHour": Field("per_hour", whole(1, MOST_NODES), "machines that are fenced within an hour; `3`"),
    "domainLabel": Field("domain_label", text, "the label that names failure domains; `topology.kubernetes.io/zone`"),
    "settle": Field("settle", seconds, "how long the controller does not trust its view after an error; `1m`"),
}
"""The fields of the failover controller: what its FencePolicy says."""

TOP: Table = {
    "apiVersion": Field("api_version", _as_is, f"`{names.API_VERSION}`"),
    "kind": Field("kind", _as_is, f"`{KIND}`"),
    "metadata": Field("metadata", _as_is, "`name`: of the scenario"),
    "description": Field("description", text, "a sentence for those who read the report"),
    "nodes": Field("nodes", _as_is, "a number of machines, or a list of groups; `3`"),
    "priorityClasses": Field("classes", mapping_of(whole(-(2**31), 10**9)), "name and value of each PriorityClass"),
    "objects": Field("objects", _as_is, "further objects of the Kubernetes API, as `kubectl apply` takes them"),
    "workloads": Field("workloads", _as_is, "a list of them"),
    "agent": Field(
        "agent",
        _as_is,
        "the fields of an [AgentConfiguration](configuration.md); "
        + ", ".join(f"`{field}: {value}`" for field, value in AGENT.items()),
    ),
    "shutdownManager": Field("manager", _manager, "who ends the pods: `lastcall`, `kubelet` or `none`; `lastcall`"),
    "controller": Field(
        "failover", _controller, "`lastcall`, or a mapping of the fields below: who fails nodes over; nobody"
    ),
    "propagationDelay": Field(
        "propagation", seconds, "how much later than the API server a node knows of endpoints; `500ms`"
    ),
    "bootsIn": Field("boot", seconds, "from power on to the kubelet's start; `30s`"),
    "assume": Field("assume", _as_is, "with `--state`: what its containers do; a mapping of the fields below"),
    "timeline": Field("timeline", _as_is, "what happens: one sentence or a list of them for each time"),
    "lasts": Field("lasts", seconds, "when it is over; `10m`"),
    "expect": Field("expect", _as_is, "what must hold: a list of sentences"),
}
"""The fields of a scenario."""

NODES: Table = {
    "name": Field("name", name, "machines are called `NAME-1`, `NAME-2` and so on; `node`"),
    "count": Field("count", whole(1, MOST_NODES), "how many; `3`"),
    "domains": Field("domains", mapping_of(list_of(text)), "a label and its values, which are dealt out in turn"),
    "labels": Field("labels", mapping_of(text), "which all of them have"),
    "capacity": Field(
        "capacity", mapping_of(quantity), f"of each; {', '.join(f'{k} {v}' for k, v in CAPACITY.items())}"
    ),
    "delayLimit": Field(
        "delay_limit",
        seconds,
        "what a drop-in of others limits logind's delay to, whatever the agent asks for; there is none",
    ),
}
"""The fields of a group of machines."""


def _leader(value: Any) -> Leader:
    if value is True:
        return Leader()
    wrong = Violations()
    arguments = wrong.fields("leader", value, LEADER)
    if wrong.found:
        raise ValueError("; ".join(wrong.found))
    return Leader(**arguments)


LEADER: Table = {
    "handover": Field("handover", seconds, "how long it takes, in the preStop hook; `1s`"),
    "election": Field("election", seconds, "how long it takes until another leads, without a handover; `10s`"),
}

_BEHAVIOUR: Table = {
    "startsIn": Field("starts", seconds, "from the order to start a container until it runs; `5s`"),
    "readyIn": Field("ready", seconds, "from then until its probes succeed; `5s`"),
    "endsIn": Field("ends", seconds_or(NEVER), f"from SIGTERM to its end; `2s`, `{NEVER}` if it ignores SIGTERM"),
    "preStop": Field("pre_stop", seconds, "how long a preStop hook takes that does not say it; `5s`"),
    "drains": Field("drains", flag, "whether it goes on answering between SIGTERM and its end; true"),
}

ASSUMED: Mapping[str, Any] = {"starts": 5.0, "ready": 5.0, "ends": 2.0, "pre_stop": 5.0, "drains": True}
"""What containers of a recorded cluster do if nobody says it."""

ASSUME: Table = {
    **_BEHAVIOUR,
    "byWorkload": Field("by_workload", mapping_of(_as_is), "the same for single workloads, by NAME or NAMESPACE/NAME"),
    "requests": Field(
        "requests", mapping_of(rate), "how many requests the clients of a Service make, by NAME or NAMESPACE/NAME"
    ),
}
"""What is assumed of a recorded cluster."""

BY_WORKLOAD: Table = _BEHAVIOUR

WORKLOADS: Table = {
    "deployment": Field("Deployment", name, "its name, if it is a Deployment"),
    "statefulSet": Field("StatefulSet", name, "its name, if it is a StatefulSet"),
    "daemonSet": Field("DaemonSet", name, "its name, if it is a DaemonSet"),
    "job": Field("Job", name, "its name, if it is a Job"),
    "namespace": Field("namespace", name, "where it is; `default`"),
    "replicas": Field("replicas", whole(0, _MOST_PODS), "how many pods; `1`"),
    "priorityClassName": Field("priority_class", text, "one of `priorityClasses`, or one that every cluster has"),
    "terminationGracePeriodSeconds": Field("grace", whole(0, 10**6), "as a pod has it; `30`"),
    "startsIn": Field("starts", seconds, "from the order to start its container until it runs; `1s`"),
    "readyIn": Field("ready", seconds, "from then until it is ready; `1s`"),
    "preStop": Field("pre_stop", seconds, "how long its preStop hook takes; it has none"),
    "endsIn": Field("ends", seconds_or(NEVER), f"from SIGTERM to its end; `1s`, `{NEVER}` if it ignores SIGTERM"),
    "drains": Field("drains", flag, "whether it goes on answering between SIGTERM and its end; `true`"),
    "requests": Field("requests", rate, "how many its clients make to its Service, such as `20/s`"),
    "volume": Field("volume", flag, "of a StatefulSet: whether each pod has a volume; `false`"),
    "writes": Field("writes", rate, "of each pod to its volume, such as `1/s`"),
    "minAvailable": Field("min_available", portion, "of its PodDisruptionBudget: a number of pods or a percentage"),
    "maxUnavailable": Field("max_unavailable", portion, "of its PodDisruptionBudget: a number of pods or a percentage"),
    "leader": Field("leader", _leader, "`true`, or how long a `handover` (`1s`) and an `election` (`10s`) take"),
    "cpu": Field("cpu", quantity, "that each pod requests; `100m`"),
    "memory": Field("memory", quantity, "that each pod requests; `64Mi`"),
    "worksFor": Field("lives", seconds, "of a Job: how long a pod works; for ever"),
}
"""The fields of a workload."""
