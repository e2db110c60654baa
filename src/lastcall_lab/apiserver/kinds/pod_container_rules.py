"""Validation of a pod's containers (``pkg/apis/core/validation``), pure."""

from collections.abc import Iterator
from typing import NamedTuple

from lastcall.model import name_rules
from lastcall_lab.apiserver.kinds import downward_api, pod_value_rules
from lastcall_lab.apiserver.kinds.pod_probes import validate_lifecycle, validate_probes
from lastcall_lab.apiserver.kinds.pod_resources import validate_resources
from lastcall_lab.apiserver.kinds.pod_volumes import Volumes, validate_devices, validate_mounts
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_PULL = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MESSAGES = ("File", "FallbackToLogsOnError")
_HOOKS = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_ONLY_SIDECARS = "may not be set for init containers without restartPolicy=Always"
_EPHEMERAL = frozenset(
    [
        "name",
        "image",
        "command",
        "args",
        "workingDir",
        "envFrom",
        "env",
        "volumeMounts",
        "volumeDevices",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "imagePullPolicy",
        "securityContext",
        "stdin",
        "stdinOnce",
        "tty",
        "targetContainerName",
    ]
)


class ContainerRulesContext(NamedTuple):
    """The context of one container's validation; ``grace`` in seconds."""

    volumes: Volumes
    grace: int | None
    restart: str


def validate_containers(spec: Object, around: ContainerRulesContext, path: str) -> Iterator[Cause]:
    """Containers, init containers and ephemeral containers of a pod spec."""
    yield from _ordinary(spec.get("containers") or [], around, f"{path}.containers")
    yield from _init(spec, around, f"{path}.initContainers")
    yield from _ephemeral(spec, around, f"{path}.ephemeralContainers")


def _ordinary(containers: list[Object], around: ContainerRulesContext, path: str) -> Iterator[Cause]:
    if not containers:
        yield field_errors.value_required(path)
    seen: set[str] = set()
    for index, container in enumerate(containers):
        place = f"{path}[{index}]"
        yield from _common(container, around, place)
        yield from _unique(container, seen, place)
        yield from validate_lifecycle(container, around.grace, place)
        yield from validate_probes(container, place)
        if "restartPolicy" in container and container["restartPolicy"] not in ("Always", "OnFailure", "Never"):
            supported = ["Always", "OnFailure", "Never"]
            yield field_errors.not_supported(f"{place}.restartPolicy", container["restartPolicy"], supported)
    yield from _host_ports(containers, path, 0)


def _init(spec: Object, around: ContainerRulesContext, path: str) -> Iterator[Cause]:
    seen = {container.get("name", "") for container in spec.get("containers") or ()}
    for index, container in enumerate(spec.get("initContainers") or ()):
        place, policy = f"{path}[{index}]", container.get("restartPolicy")
        yield from _common(container, around, place)
        if policy not in (None, "Always", "OnFailure", "Never"):
            yield field_errors.not_supported(f"{place}.restartPolicy", policy, ["Always", "OnFailure", "Never"])
        yield from _unique(container, seen, place)
        yield from _host_ports([container], path, index)
        if policy == "Always":
            yield from validate_lifecycle(container, around.grace, place)
            yield from validate_probes(container, place)
            continue
        for name in _HOOKS:
            if name in container:
                yield field_errors.forbidden(f"{place}.{name}", _ONLY_SIDECARS)


def _ephemeral(spec: Object, around: ContainerRulesContext, path: str) -> Iterator[Cause]:
    others = {one.get("name", "") for name in ("containers", "initContainers") for one in spec.get(name) or ()}
    seen = {*others}
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        place, target = f"{path}[{index}]", container.get("targetContainerName", "")
        yield from _common(container, around, place)
        yield from validate_image(container, place)
        yield from _unique(container, seen, place)
        if target and target not in others:
            yield field_errors.not_found(f"{place}.targetContainerName", target)
        for name, value in container.items():
            if name not in _EPHEMERAL and value:
                yield field_errors.forbidden(f"{place}.{name}", "cannot be set for an Ephemeral Container")
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            for name in ("subPath", "subPathExpr"):
                if mount.get(name):
                    where = f"{place}.volumeMounts[{number}].{name}"
                    yield field_errors.forbidden(where, "cannot be set for an Ephemeral Container")


def validate_image(container: Object, path: str) -> Iterator[Cause]:
    """Applies to pods only, not to templates."""
    image = container.get("image", "")
    if image != image.strip():
        yield field_errors.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")


def _unique(container: Object, seen: set[str], path: str) -> Iterator[Cause]:
    name = container.get("name", "")
    if name in seen:
        yield field_errors.duplicate(f"{path}.name", name)
    elif name:
        seen.add(name)


def _common(container: Object, around: ContainerRulesContext, path: str) -> Iterator[Cause]:
    name, policy = container.get("name", ""), container.get("terminationMessagePolicy", "")
    if not name:
        yield field_errors.value_required(f"{path}.name")
    elif wrong := name_rules.dns_label_error(name):
        yield field_errors.invalid(f"{path}.name", name, wrong)
    if not container.get("image"):
        yield field_errors.value_required(f"{path}.image")
    yield from _choice(policy, _MESSAGES, f"{path}.terminationMessagePolicy")
    yield from _ports(container.get("ports") or [], f"{path}.ports")
    yield from _environment(container, path)
    yield from validate_mounts(container, around.volumes, path)
    yield from validate_devices(container, around.volumes, path)
    yield from _choice(container.get("imagePullPolicy", ""), _PULL, f"{path}.imagePullPolicy")
    yield from validate_resources(container.get("resources") or {}, f"{path}.resources")
    yield from _resizing(container.get("resizePolicy") or [], around.restart, f"{path}.resizePolicy")
    yield from _security(container.get("securityContext") or {}, f"{path}.securityContext")


def _choice(value: str, supported: tuple[str, ...], path: str) -> Iterator[Cause]:
    if not value:
        yield field_errors.value_required(path)
    elif value not in supported:
        yield field_errors.not_supported(path, value, supported)


def _ports(ports: list[Object], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        place, name, number = f"{path}[{index}]", port.get("name", ""), port.get("containerPort", 0)
        if name and (wrong := pod_value_rules.port_name_errors(name)):
            yield from (field_errors.invalid(f"{place}.name", name, why) for why in wrong)
        elif name in seen:
            yield field_errors.duplicate(f"{place}.name", name)
        elif name:
            seen.add(name)
        if not number:
            yield field_errors.value_required(f"{place}.containerPort")
        elif why := pod_value_rules.port_number_error(number):
            yield field_errors.invalid(f"{place}.containerPort", number, why)
        if port.get("hostPort") and (why := pod_value_rules.port_number_error(port["hostPort"])):
            yield field_errors.invalid(f"{place}.hostPort", port["hostPort"], why)
        yield from _choice(port.get("protocol", ""), _PROTOCOLS, f"{place}.protocol")


def _host_ports(containers: list[Object], path: str, first: int) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, container in enumerate(containers, first):
        for number, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            what = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if what in seen:
                yield field_errors.duplicate(f"{path}[{index}].ports[{number}].hostPort", what)
            seen.add(what)


def _environment(container: Object, path: str) -> Iterator[Cause]:
    for index, variable in enumerate(container.get("env") or ()):
        place, name = f"{path}.env[{index}]", variable.get("name", "")
        if not name:
            yield field_errors.value_required(f"{place}.name")
        elif wrong := pod_value_rules.variable_name_error(name):
            yield field_errors.invalid(f"{place}.name", name, wrong)
        if (source := variable.get("valueFrom")) is not None:
            yield from _value_from(source, variable.get("value", ""), f"{place}.valueFrom")
    for index, source in enumerate(container.get("envFrom") or ()):
        yield from _all_from(source, f"{path}.envFrom", f"{path}.envFrom[{index}]")


def _value_from(source: Object, value: str, path: str) -> Iterator[Cause]:
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if kind in source:
            yield from _key_of(source[kind], f"{path}.{kind}")
    if "fieldRef" in source:
        yield from downward_api.check_field(source["fieldRef"], f"{path}.fieldRef")
    if "resourceFieldRef" in source:
        yield from downward_api.check_resource(source["resourceFieldRef"], f"{path}.resourceFieldRef")
    if not source:
        why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        yield field_errors.invalid(path, "", why)
    elif value:
        yield field_errors.invalid(path, "", "may not be specified when `value` is not empty")
    elif len(source) > 1:
        yield field_errors.invalid(path, "", "may not have more than one field specified at a time")


def _key_of(reference: Object, path: str) -> Iterator[Cause]:
    name, key = reference.get("name", ""), reference.get("key", "")
    if wrong := name_rules.subdomain_error(name):
        yield field_errors.invalid(f"{path}.name", name, wrong)
    if not key:
        yield field_errors.value_required(f"{path}.key")
    elif wrong := pod_value_rules.config_key_error(key):
        yield field_errors.invalid(f"{path}.key", key, wrong)


def _all_from(source: Object, path: str, place: str) -> Iterator[Cause]:
    if (prefix := source.get("prefix")) and (wrong := pod_value_rules.variable_name_error(prefix)):
        yield field_errors.invalid(f"{place}.prefix", prefix, wrong)
    references = [kind for kind in ("configMapRef", "secretRef") if kind in source]
    for kind in references:
        if not (name := source[kind].get("name", "")):
            yield field_errors.value_required(f"{place}.{kind}.name")
        elif wrong := name_rules.subdomain_error(name):
            yield field_errors.invalid(f"{place}.{kind}.name", name, wrong)
    if not references:
        yield field_errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(references) > 1:
        yield field_errors.invalid(path, "", "may not have more than one field specified at a time")


def _resizing(policies: list[Object], restart: str, path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        resource, how = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            yield field_errors.duplicate(f"{path}[{index}]", resource)
        seen.add(resource)
        yield from _choice(resource, ("cpu", "memory"), path)
        yield from _choice(how, ("NotRequired", "RestartContainer"), path)
        if restart == "Never" and how != "NotRequired":
            yield field_errors.invalid(path, how, "must be 'NotRequired' when `restartPolicy` is 'Never'")


def _security(context: Object, path: str) -> Iterator[Cause]:
    for name in ("runAsUser", "runAsGroup"):
        if name in context and (wrong := pod_value_rules.identity_error(context[name])):
            yield field_errors.invalid(f"{path}.{name}", context[name], wrong)
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield field_errors.invalid(path, context, why)
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            yield field_errors.invalid(path, context, why)
