"""Validation of the spec of a pod or template (``validation.ValidatePodSpec``), pure."""

from collections.abc import Iterator

from lastcall.model import name_rules
from lastcall_lab.apiserver.kinds import pod_value_rules
from lastcall_lab.apiserver.kinds.eviction_responders import validate_eviction_responders
from lastcall_lab.apiserver.kinds.pod_container_rules import ContainerRulesContext, validate_containers
from lastcall_lab.apiserver.kinds.pod_scheduling_rules import (
    validate_affinity,
    validate_gates,
    validate_spreading,
    validate_tolerations,
)
from lastcall_lab.apiserver.kinds.pod_volumes import validate_volumes
from lastcall_lab.apiserver.values import field_errors, object_meta
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_RESTART = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION = ("PreemptLowerPriority", "Never")
_MOST = 2**31 - 1


def validate_pod_spec(spec: Object, path: str, *, is_pod: bool = False) -> Iterator[Cause]:
    """The violations in the spec of a pod (``is_pod``) or template at ``path``, in Kubernetes' order."""
    volumes, causes = validate_volumes(spec.get("volumes") or [], f"{path}.volumes")
    yield from causes
    around = ContainerRulesContext(volumes, spec.get("terminationGracePeriodSeconds"), spec.get("restartPolicy", ""))
    yield from validate_containers(spec, around, path)
    yield from _host_network(spec, path, is_pod=is_pod)
    yield from _choice(spec.get("restartPolicy", ""), _RESTART, f"{path}.restartPolicy")
    yield from _choice(spec.get("dnsPolicy", ""), _DNS, f"{path}.dnsPolicy")
    yield from object_meta.check_labels(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    yield from _security(spec, f"{path}.securityContext")
    yield from validate_affinity(spec.get("affinity") or {}, f"{path}.affinity")
    yield from _dns_config(spec, f"{path}.dnsConfig")
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        yield from _name_violations(
            gate,
            "conditionType",
            name_rules.qualified_name_error(gate["conditionType"]),
            f"{path}.readinessGates[{index}]",
        )
    yield from validate_gates(spec.get("schedulingGates") or [], f"{path}.schedulingGates")
    yield from validate_spreading(spec.get("topologySpreadConstraints") or [], f"{path}.topologySpreadConstraints")
    yield from _host_users(spec, path)
    yield from _names(spec, path)
    yield from validate_tolerations(spec.get("tolerations") or [], f"{path}.tolerations")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from _alias(alias, f"{path}.hostAliases[{index}]")
    for name in ("priorityClassName", "runtimeClassName"):
        yield from _name_violations(spec, name, name_rules.subdomain_error(spec.get(name) or "a"), path)
    if "preemptionPolicy" in spec:
        yield from _choice(spec["preemptionPolicy"], _PREEMPTION, f"{path}.preemptionPolicy")
    if (system := spec.get("os")) is not None:
        where = f"{path}.os" if system.get("name") else f"{path}.os.name"  # same as in Kubernetes
        yield from _choice(system.get("name", ""), ("linux", "windows"), where)
    yield from validate_eviction_responders(spec, path)


def _choice(value: str, supported: tuple[str, ...], path: str) -> Iterator[Cause]:
    if not value:
        yield field_errors.value_required(path)
    elif value not in supported:
        yield field_errors.not_supported(path, value, supported)


def _name_violations(owner: Object, name: str, wrong: str, path: str) -> Iterator[Cause]:
    if wrong:
        yield field_errors.invalid(f"{path}.{name}", owner[name], wrong)


def _host_network(spec: Object, path: str, *, is_pod: bool) -> Iterator[Cause]:
    for index, container in enumerate((spec.get("hostNetwork") and spec.get("containers")) or ()):
        for number, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port.get("containerPort", 0):
                where = f"{path}.containers[{index}].ports[{number}].hostPort"
                yield field_errors.invalid(where, host, "must match `containerPort` when `hostNetwork` is true")


def _security(spec: Object, path: str) -> Iterator[Cause]:
    context = spec.get("securityContext") or {}
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        if name in context:
            yield from _name_violations(context, name, pod_value_rules.identity_error(context[name]), path)
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        if wrong := pod_value_rules.identity_error(group):
            yield field_errors.invalid(f"{path}.supplementalGroups[{index}]", group, wrong)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield field_errors.invalid(f"{path}.shareProcessNamespace", value=True, why=why)
    if context.get("fsGroupChangePolicy") not in (None, "Always", "OnRootMismatch"):
        policy = context["fsGroupChangePolicy"]
        yield field_errors.not_supported(f"{path}.fsGroupChangePolicy", policy, ["Always", "OnRootMismatch"])


def _dns_config(spec: Object, path: str) -> Iterator[Cause]:
    config, policy = spec.get("dnsConfig"), spec.get("dnsPolicy")
    servers = (config or {}).get("nameservers") or []
    if policy == "None" and config is None:
        yield field_errors.value_required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        return
    if policy == "None" and not servers:
        yield field_errors.value_required(
            f"{path}.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None"
        )
    if len(servers) > 3:
        yield field_errors.invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers")
    for index, server in enumerate(servers):
        if wrong := pod_value_rules.address_error(server):
            yield field_errors.invalid(f"{path}.nameservers[{index}]", server, wrong)
    for index, option in enumerate((config or {}).get("options") or ()):
        if not option.get("name"):
            yield field_errors.value_required(f"{path}.options[{index}]", "must not be empty")


def _host_users(spec: Object, path: str) -> Iterator[Cause]:
    if spec.get("hostUsers") is False:
        for name, said in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(name):
                yield field_errors.forbidden(f"{path}.{said}", "when `pod.Spec.HostUsers` is false")


def _names(spec: Object, path: str) -> Iterator[Cause]:
    for name in ("serviceAccountName", "nodeName"):
        yield from _name_violations(spec, name, name_rules.subdomain_error(spec.get(name) or "a"), path)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _MOST:
        yield field_errors.invalid(
            f"{path}.activeDeadlineSeconds", deadline, f"must be between 1 and {_MOST}, inclusive"
        )
    for name in ("hostname", "subdomain"):
        yield from _name_violations(spec, name, name_rules.dns_label_error(spec.get(name) or "a"), path)


def _alias(alias: Object, path: str) -> Iterator[Cause]:
    yield from _name_violations(alias, "ip", pod_value_rules.address_error(alias.get("ip", "")), path)
    for index, name in enumerate(alias.get("hostnames") or ()):
        if wrong := name_rules.subdomain_error(name):
            yield field_errors.invalid(f"{path}.hostnames[{index}]", name, wrong)
