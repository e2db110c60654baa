"""Defaults of pods and pod templates (``pkg/apis/core/v1/defaults.go``), pure.

Objects have the form that the schema produces: no null, and no empty value where a typed server omits it.
"""

from collections.abc import Iterator

from lastcall.model.quantities import canonical_quantity
from lastcall_lab.apiserver.kinds.image_names import is_latest
from lastcall_lab.apiserver.values.request import Object

GRACE = 30
"""The default of ``terminationGracePeriodSeconds``."""

CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
"""The container fields of a pod spec, in the order in which Kubernetes visits them."""

_MODE = 0o644


def set_pod_defaults(pod: Object) -> None:
    """Sets the defaults of a pod."""
    spec = pod.setdefault("spec", {})
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    set_spec_defaults(spec)
    for container in containers_of(spec, ("containers", "initContainers")):
        _requests_from_limits(container["resources"])
        if spec.get("hostNetwork"):
            _host_ports(container)
    spec.setdefault("enableServiceLinks", True)


def set_template_defaults(template: Object) -> None:
    """Sets the defaults of a workload's template, which are fewer than a pod's."""
    template.setdefault("metadata", {})
    set_spec_defaults(template.setdefault("spec", {}))


def set_spec_defaults(spec: Object) -> None:
    """The common defaults of pods and templates."""
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", GRACE)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    for container in containers_of(spec):
        set_container_defaults(container)
    for volume in spec.get("volumes") or ():
        _volume(volume)


def set_container_defaults(container: Object) -> None:
    """The defaults of a container of any type."""
    _round_up(container.setdefault("resources", {}))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    latest = is_latest(container.get("image", ""))
    container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        _references(variable.get("valueFrom") or {})
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(name)) is not None:
            _probe(probe)
    _lifecycle(container)


def containers_of(spec: Object, names: tuple[str, ...] = CONTAINERS) -> Iterator[Object]:
    """The containers of a pod's spec."""
    for name in names:
        yield from spec.get(name) or ()


def _round_up(resources: Object) -> None:
    """Rounds up to thousandths (``SetDefaults_ResourceList``)."""
    for side in ("limits", "requests"):
        if amounts := resources.get(side):
            resources[side] = {name: canonical_quantity(str(amount), milli=True) for name, amount in amounts.items()}


def _requests_from_limits(resources: Object) -> None:
    if limits := resources.get("limits"):
        requests = resources.get("requests") or {}
        resources["requests"] = {**requests, **{name: limits[name] for name in limits if name not in requests}}


def _host_ports(container: Object) -> None:
    for port in container.get("ports") or ():
        if port.get("containerPort"):
            port.setdefault("hostPort", port["containerPort"])


def _probe(probe: Object) -> None:
    for name, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        probe[name] = probe.get(name) or value
    _handler(probe)


def _handler(handler: Object) -> None:
    if (request := handler.get("httpGet")) is not None:
        request.setdefault("path", "/")
        request.setdefault("scheme", "HTTP")
    if (call := handler.get("grpc")) is not None:
        call.setdefault("service", "")


def _lifecycle(container: Object) -> None:
    """Drops stop signals, an alpha feature (``ContainerStopSignals``)."""
    lifecycle = container.get("lifecycle") or {}
    if lifecycle.pop("stopSignal", None) is not None and not lifecycle:
        del container["lifecycle"]
    for handler in lifecycle.values():
        _handler(handler)


def _references(source: Object) -> None:
    """Defaults of a downward API reference in a variable or file."""
    if field := source.get("fieldRef"):
        field.setdefault("apiVersion", "v1")
    if resource := source.get("resourceFieldRef"):
        resource.setdefault("divisor", "0")


def _volume(volume: Object) -> None:
    if not any(name != "name" for name in volume):
        volume["emptyDir"] = {}
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        if (source := volume.get(name)) is not None:
            source.setdefault("defaultMode", _MODE)
    if (path := volume.get("hostPath")) is not None:
        path.setdefault("type", "")
    for source in (volume.get("projected") or {}).get("sources") or ():
        if (token := source.get("serviceAccountToken")) is not None:
            token.setdefault("expirationSeconds", 3600)
        _files(source.get("downwardAPI") or {})
    _files(volume.get("downwardAPI") or {})
    if template := (volume.get("ephemeral") or {}).get("volumeClaimTemplate"):
        template.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def _files(source: Object) -> None:
    for item in source.get("items") or ():
        _references(item)
