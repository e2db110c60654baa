"""The rules for what a pod, or a pod template, is to be (``validation.ValidatePodSpec``), pure."""

from collections.abc import Iterator

from lastcall.lab.apiserver import fields, meta, names
from lastcall.lab.apiserver.kinds import pod_values
from lastcall.lab.apiserver.kinds.pod_containers import Surroundings, validate_containers
from lastcall.lab.apiserver.kinds.pod_scheduling import (
    validate_affinity,
    validate_gates,
    validate_spreading,
    validate_tolerations,
)
from lastcall.lab.apiserver.kinds.pod_volumes import validate_volumes
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.status import Cause

_RESTART = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION = ("PreemptLowerPriority", "Never")
_MOST = 2**31 - 1


def validate_pod_spec(spec: Object, path: str, *, is_pod: bool = False) -> Iterator[Cause]:
    """What is wrong with the spec of a pod (``is_pod``) or of a template, in Kubernetes' order; ``path`` leads to it."""
    volumes, causes = validate_volumes(spec.get("volumes") or [], f"{path}.volumes")
    yield from causes
    around = Surroundings(volumes, spec.get("terminationGracePeriodSeconds"), spec.get("restartPolicy", ""))
    yield from validate_containers(spec, around, path)
    yield from _host_network(spec, path, is_pod=is_pod)
    yield from _choice(spec.get("restartPolicy", ""), _RESTART, f"{path}.restartPolicy")
    yield from _choice(spec.get("dnsPolicy", ""), _DNS, f"{path}.dnsPolicy")
    yield from meta.check_labels(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    yield from _security(spec, f"{path}.securityContext")
    yield from validate_affinity(spec.get("affinity") or {}, f"{path}.affinity")
    yield from _dns_config(spec, f"{path}.dnsConfig")
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        yield from _named(
            gate, "conditionType", names.qualified(gate["conditionType"]), f"{path}.readinessGates[{index}]"
        )
    yield from validate_gates(spec.get("schedulingGates") or [], f"{path}.schedulingGates")
    yield from validate_spreading(spec.get("topologySpreadConstraints") or [], f"{path}.topologySpreadConstraints")
    yield from _host_users(spec, path)
    yield from _names(spec, path)
    yield from validate_tolerations(spec.get("tolerations") or [], f"{path}.tolerations")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from _alias(alias, f"{path}.hostAliases[{index}]")
    for name in ("priorityClassName", "runtimeClassName"):
        yield from _named(spec, name, names.subdomain(spec.get(name) or "a"), path)
    if "preemptionPolicy" in spec:
        yield from _choice(spec["preemptionPolicy"], _PREEMPTION, f"{path}.preemptionPolicy")
    if (system := spec.get("os")) is not None:
        where = f"{path}.os" if system.get("name") else f"{path}.os.name"  # as Kubernetes has it
        yield from _choice(system.get("name", ""), ("linux", "windows"), where)


def _choice(value: str, supported: tuple[str, ...], path: str) -> Iterator[Cause]:
    if not value:
        yield fields.required(path)
    elif value not in supported:
        yield fields.not_supported(path, value, supported)


def _named(owner: Object, name: str, wrong: str, path: str) -> Iterator[Cause]:
    if wrong:
        yield fields.invalid(f"{path}.{name}", owner[name], wrong)


def _host_network(spec: Object, path: str, *, is_pod: bool) -> Iterator[Cause]:
    for index, container in enumerate((spec.get("hostNetwork") and spec.get("containers")) or ()):
        for number, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port.get("containerPort", 0):
                where = f"{path}.containers[{index}].ports[{number}].hostPort"
                yield fields.invalid(where, host, "must match `containerPort` when `hostNetwork` is true")


def _security(spec: Object, path: str) -> Iterator[Cause]:
    context = spec.get("securityContext") or {}
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        if name in context:
            yield from _named(context, name, pod_values.identity(context[name]), path)
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        if wrong := pod_values.identity(group):
            yield fields.invalid(f"{path}.supplementalGroups[{index}]", group, wrong)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield fields.invalid(f"{path}.shareProcessNamespace", value=True, why=why)
    if context.get("fsGroupChangePolicy") not in (None, "Always", "OnRootMismatch"):
        policy = context["fsGroupChangePolicy"]
        yield fields.not_supported(f"{path}.fsGroupChangePolicy", policy, ["Always", "OnRootMismatch"])


def _dns_config(spec: Object, path: str) -> Iterator[Cause]:
    config, policy = spec.get("dnsConfig"), spec.get("dnsPolicy")
    servers = (config or {}).get("nameservers") or []
    if policy == "None" and config is None:
        yield fields.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        return
    if policy == "None" and not servers:
        yield fields.required(
            f"{path}.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None"
        )
    if len(servers) > 3:
        yield fields.invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers")
    for index, server in enumerate(servers):
        if wrong := pod_values.address(server):
            yield fields.invalid(f"{path}.nameservers[{index}]", server, wrong)
    for index, option in enumerate((config or {}).get("options") or ()):
        if not option.get("name"):
            yield fields.required(f"{path}.options[{index}]", "must not be empty")


def _host_users(spec: Object, path: str) -> Iterator[Cause]:
    if spec.get("hostUsers") is False:
        for name, said in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(name):
                yield fields.forbidden(f"{path}.{said}", "when `pod.Spec.HostUsers` is false")


def _names(spec: Object, path: str) -> Iterator[Cause]:
    for name in ("serviceAccountName", "nodeName"):
        yield from _named(spec, name, names.subdomain(spec.get(name) or "a"), path)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MOST:
        yield fields.invalid(f"{path}.activeDeadlineSeconds", deadline, f"must be between 1 and {_MOST}, inclusive")
    for name in ("hostname", "subdomain"):
        yield from _named(spec, name, names.label(spec.get(name) or "a"), path)


def _alias(alias: Object, path: str) -> Iterator[Cause]:
    yield from _named(alias, "ip", pod_values.address(alias.get("ip", "")), path)
    for index, name in enumerate(alias.get("hostnames") or ()):
        if wrong := names.subdomain(name):
            yield fields.invalid(f"{path}.hostnames[{index}]", name, wrong)
