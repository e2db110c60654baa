"""Warnings to clients about new pods and templates (``pkg/api/pod/warnings.go``), pure."""

from collections.abc import Iterator

from lastcall.model import name_rules, quantities
from lastcall_lab.apiserver.kinds.pod_defaults import CONTAINERS
from lastcall_lab.apiserver.values.request import Object

_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
}
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_AFFINITY = "spec.affinity.nodeAffinity"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def pod_warnings(pod: Object) -> Iterator[str]:
    """The warnings about a new pod."""
    if wrong := name_rules.dns_label_error(pod["metadata"].get("name", "")):
        yield (
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is"
            f" recommended: [{wrong}]"
        )
    yield from template_warnings(pod, "")


def template_warnings(template: Object, path: str) -> Iterator[str]:
    """The warnings about a template; a non-empty ``path`` ends with a dot."""
    spec, annotations = template["spec"], template["metadata"].get("annotations") or {}
    yield from _where(spec, path)
    for key, why in _ANNOTATIONS.items():
        if key in annotations:
            yield f"{path}metadata.annotations[{key}]: {why}"
    for index, volume in enumerate(spec.get("volumes") or ()):
        for name, why in _VOLUMES.items():
            if name in volume:
                yield f"{path}spec.volumes[{index}].{name}: {why}"
    yield from _twice(spec, "hostAliases", "ip", path)
    yield from _twice(spec, "imagePullSecrets", "name", path)
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{path}spec.imagePullSecrets[{index}].name: invalid empty name ""'
    for place, container in _containers(spec, path):
        yield from _amounts(container, place)
        yield from _variables(container, place)
    yield from _ports(spec, path)


def _containers(spec: Object, path: str) -> Iterator[tuple[str, Object]]:
    for name in CONTAINERS:
        for index, container in enumerate(spec.get(name) or ()):
            yield f"{path}spec.{name}[{index}]", container


def _where(spec: Object, path: str) -> Iterator[str]:
    for key in spec.get("nodeSelector") or {}:
        if key in _LABELS:
            yield f"{path}spec.nodeSelector[{key}]: {_LABELS[key]}"
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms):
        yield from _term(term, f"{path}{_AFFINITY}.{_REQUIRED}.nodeSelectorTerms[{index}]")
    for index, term in enumerate(affinity.get(_PREFERRED) or ()):
        yield from _term(term.get("preference") or {}, f"{path}{_AFFINITY}.{_PREFERRED}[{index}].preference")
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        place, key = f"{path}spec.topologySpreadConstraints[{index}]", constraint.get("topologyKey", "")
        if key in _LABELS:
            yield f"{place}.topologyKey: {key} is {_LABELS[key]}"
        if "labelSelector" not in constraint:
            yield f"{place}.labelSelector: a null labelSelector results in matching no pod"


def _term(term: Object, path: str) -> Iterator[str]:
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        key = requirement.get("key", "")
        if key in _LABELS:
            yield f"{path}.matchExpressions[{index}].key: {key} is {_LABELS[key]}"


def _twice(spec: Object, name: str, key: str, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(spec.get(name) or ()):
        value = item.get(key, "")
        if value in seen:
            yield f'{path}spec.{name}[{index}].{key}: duplicate {key} "{value}"'
        seen.add(value)


def _amounts(container: Object, path: str) -> Iterator[str]:
    resources = container.get("resources") or {}
    for name in ("memory", "ephemeral-storage"):
        for side in ("limits", "requests"):
            amount = (resources.get(side) or {}).get(name)
            if amount is not None and quantities.parse_quantity(str(amount)).denominator != 1:
                why = f'fractional byte value "{amount}" is invalid, must be an integer'
                yield f"{path}.resources.{side}[{name}]: {why}"


def _variables(container: Object, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, variable in enumerate(container.get("env") or ()):
        name, value = variable.get("name", ""), variable.get("value", "")
        reference = f"$({name})"
        builds_on = reference in value and value != reference and "valueFrom" not in variable
        if name in seen and not builds_on:
            why = f'hides previous definition of "{name}", which may be dropped when using apply'
            yield f"{path}.env[{index}]: {why}"
        seen.add(name)


def _ports(spec: Object, path: str) -> Iterator[str]:
    seen: dict[tuple[int, str], list[tuple[str, Object]]] = {}
    for place, container in _containers(spec, path):
        for index, port in enumerate(container.get("ports") or ()):
            where = f"{place}.ports[{index}]"
            others = seen.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
            for first, other in others:
                if port.get("hostIP") == other.get("hostIP") and port.get("hostPort") == other.get("hostPort"):
                    yield f"{where}: duplicate port definition with {first}"
                elif not port.get("hostPort") or not other.get("hostPort"):
                    yield f"{where}: overlapping port definition with {first}"
            others.append((where, port))
