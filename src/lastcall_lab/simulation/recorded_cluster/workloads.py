"""The workloads of a file, and which pods belong to which (pure)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lastcall.model.pods import FINISHED, Pod
from lastcall_lab.apiserver.kinds.pod_update_rules import MIRROR
from lastcall_lab.apiserver.values.request import Object
from lastcall_lab.controllers.framework.view import controller_of
from lastcall_lab.controllers.workloads import daemon_pods
from lastcall_lab.simulation.recorded_cluster.pod_specs import every_container, sleep_seconds
from lastcall_lab.simulation.scenario import ScenarioWorkload, ScenarioWorkloadKind

ASSUMED = -1.0
_ORDER = ("StatefulSet", "Deployment", "DaemonSet", "Job", "ReplicaSet")


class RecordedWorkloads:
    """``members`` maps the uids of owners and of bare pods, and NAMESPACE/NAME of static pods, to workloads' keys."""

    def __init__(self, objects: Sequence[Object], former: Mapping[str, str]) -> None:
        self.members: dict[str, str] = {}
        self.found: dict[str, ScenarioWorkload] = {}
        self._former = former
        self._nodes = [one for one in objects if one["kind"] == "Node"]
        pods = [one for one in objects if one["kind"] == "Pod"]
        self._busy = Counter(
            owner["uid"]
            for pod in pods
            if (owner := controller_of(pod)) and (pod.get("status") or {}).get("phase") not in FINISHED
        )
        for kind in _ORDER:
            for obj in (one for one in objects if one["kind"] == kind):
                self._add_workload(ScenarioWorkloadKind(kind), obj)
        self._add_bare_pods(pods)

    def _add_workload(self, kind: ScenarioWorkloadKind, obj: Object) -> None:
        metadata, owner = obj["metadata"], controller_of(obj)
        if owner and owner["uid"] in self.members:
            self.members[metadata["uid"]] = self.members[owner["uid"]]
            return
        replicas = obj["spec"].get("replicas", 1)
        if kind is ScenarioWorkloadKind.JOB:
            replicas = self._busy[metadata["uid"]]
        nodes = ()
        if kind is ScenarioWorkloadKind.DAEMON_SET:
            nodes = tuple(one["metadata"]["name"] for one in self._nodes if daemon_pods.node_fit(obj, one).stay)
            replicas = len(nodes)
        if replicas:
            template = obj["spec"]["template"]
            self.members[metadata["uid"]] = self._add(kind, metadata, replicas, template["spec"], nodes)

    def _add(
        self, kind: ScenarioWorkloadKind, metadata: Object, replicas: int, spec: Object, nodes: tuple[str, ...] = ()
    ) -> str:
        """Its key. Where two have the same name, the later one has its kind behind it."""
        name, namespace = metadata["name"], metadata["namespace"]
        if f"{namespace}/{name}" in self.found:
            name = f"{name}.{kind.value.lower()}"
        key = f"{namespace}/{name}"
        hooks = {one["name"]: hook_seconds(one) for one in every_container(spec)}
        self.found[key] = ScenarioWorkload(
            kind=kind,
            name=name,
            namespace=namespace,
            replicas=replicas,
            grace=spec.get("terminationGracePeriodSeconds", 30),
            hooks={name: takes for name, takes in hooks.items() if takes is not None},
            volume=bool(spec.get("volumes")),
            nodes=nodes,
        )
        return key

    def _add_bare_pods(self, pods: Iterable[Object]) -> None:
        """Those that no workload of the file owns: each static pod's copies, the pods of an unknown owner, each other."""
        groups: dict[tuple[str, str], list[Object]] = {}
        for pod in pods:
            owner = controller_of(pod)
            if (owner and owner["uid"] in self.members) or (pod.get("status") or {}).get("phase") in FINISHED:
                continue
            if not pod["spec"].get("nodeName"):
                continue
            groups.setdefault((pod["metadata"]["namespace"], self._workload_name(pod)), []).append(pod)
        for (namespace, name), found in sorted(groups.items()):
            key = self._add(
                ScenarioWorkloadKind.POD, {"name": name, "namespace": namespace}, len(found), found[0]["spec"]
            )
            for pod in found:
                self.members[pod["metadata"]["uid"]] = key
                if is_static(pod):
                    self.members[f"{namespace}/{pod['metadata']['name']}"] = key

    def _workload_name(self, pod: Object) -> str:
        name = str(pod["metadata"]["name"])
        if is_static(pod):
            return name.removesuffix(f"-{pod['spec']['nodeName']}")
        return self._former.get(pod["metadata"]["uid"], name)


def is_static(pod: Object) -> bool:
    """Whether it is the mirror of a pod that a kubelet has from a file."""
    return MIRROR in (pod["metadata"].get("annotations") or {})


def hook_seconds(container: Object) -> float | None:
    """How long its preStop hook takes, by what it says; ``ASSUMED`` if it does not say, None if it has none."""
    said = (container.get("lifecycle") or {}).get("preStop") or {}
    if "sleep" in said:
        return float(said["sleep"]["seconds"])
    if "exec" in said:
        return sleep_seconds(tuple(said["exec"].get("command") or ())) or ASSUMED
    return ASSUMED if "httpGet" in said else None


def service_backends(objects: Sequence[Object], workloads: RecordedWorkloads) -> Iterator[tuple[str, str]]:
    """Which workload (by its key) the pods of each Service belong to: NAMESPACE/NAME and key, for each pair."""
    pods: dict[str, list[Object]] = {}
    for pod in (one for one in objects if one["kind"] == "Pod"):
        pods.setdefault(pod["metadata"]["namespace"], []).append(pod)
    for service in (one for one in objects if one["kind"] == "Service"):
        selector, namespace = service["spec"].get("selector"), service["metadata"]["namespace"]
        if not selector:
            continue
        chosen = [pod for pod in pods.get(namespace, ()) if _is_selected(selector, pod)]
        for key in dict.fromkeys(filter(None, (_member_key(pod, workloads.members) for pod in chosen))):
            yield f"{namespace}/{service['metadata']['name']}", key


def workload_key(pod: Pod, members: Mapping[str, str]) -> str:
    """The key of the workload that a pod belongs to; empty if it is of none."""
    metadata = pod.metadata
    owner = next((one.uid for one in metadata.owner_references or () if one.controller), "")
    places = (owner, metadata.uid, f"{metadata.namespace}/{metadata.name}")
    return next((members[place] for place in places if place in members), "")


def _member_key(pod: Object, members: Mapping[str, str]) -> str:
    owner, uid = controller_of(pod), pod["metadata"]["uid"]
    return members.get(owner["uid"] if owner else "", members.get(uid, ""))


def _is_selected(selector: Mapping[str, str], pod: Object) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return all(labels.get(name) == value for name, value in selector.items())
