"""Validation of probes and lifecycle hooks (``pkg/apis/core/validation``), pure."""

from collections.abc import Iterator

from lastcall_lab.apiserver.kinds import pod_value_rules
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_MANY = "may not specify more than 1 handler type"


def validate_lifecycle(container: Object, grace: int | None, path: str) -> Iterator[Cause]:
    """``postStart`` and ``preStop``; a sleep must fit into a known grace period (seconds)."""
    lifecycle = container.get("lifecycle") or {}
    for name in ("postStart", "preStop"):
        if name in lifecycle:
            handlers = ("exec", "httpGet", "tcpSocket", "sleep")
            yield from _handler(lifecycle[name], handlers, grace, f"{path}.lifecycle.{name}")


def validate_probes(container: Object, path: str) -> Iterator[Cause]:
    """Startup, readiness and liveness probes."""
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(name)) is None:
            continue
        place = f"{path}.{name}"
        yield from _probe(probe, place)
        if name == "readinessProbe":
            if (grace := probe.get("terminationGracePeriodSeconds")) is not None:
                why = "must not be set for readinessProbes"
                yield field_errors.invalid(f"{place}.terminationGracePeriodSeconds", grace, why)
        elif probe.get("successThreshold", 1) != 1:
            yield field_errors.invalid(f"{place}.successThreshold", probe["successThreshold"], "must be 1")


def _probe(probe: Object, path: str) -> Iterator[Cause]:
    yield from _handler(probe, ("exec", "httpGet", "tcpSocket", "grpc"), None, path)
    for name in _COUNTS:
        if probe.get(name, 0) < 0:
            yield field_errors.invalid(f"{path}.{name}", probe[name], "must be greater than or equal to 0")
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        yield field_errors.invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")


def _handler(handler: Object, kinds: tuple[str, ...], grace: int | None, path: str) -> Iterator[Cause]:
    present = [kind for kind in kinds if handler.get(kind) is not None]
    if not present:
        yield field_errors.value_required(path, "must specify a handler type")
        return
    yield from _action(present[0], handler[present[0]], grace, f"{path}.{present[0]}")
    for kind in present[1:]:
        yield field_errors.forbidden(f"{path}.{kind}", _MANY)


def _action(kind: str, action: Object, grace: int | None, path: str) -> Iterator[Cause]:
    if kind == "exec" and not action.get("command"):
        yield field_errors.value_required(f"{path}.command")
    elif kind == "httpGet":
        yield from _http(action, path)
    elif kind in ("tcpSocket", "grpc"):
        yield from _port(action.get("port", 0), f"{path}.port")
    elif kind == "sleep" and grace is not None and not 0 <= action.get("seconds", 0) <= grace:
        why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        yield field_errors.invalid(path, action["seconds"], why)


def _http(action: Object, path: str) -> Iterator[Cause]:
    if not action.get("path"):
        yield field_errors.value_required(f"{path}.path")
    yield from _port(action.get("port", 0), f"{path}.port")
    if action.get("scheme", "") not in ("HTTP", "HTTPS"):
        yield field_errors.not_supported(f"{path}.scheme", action.get("scheme", ""), ["HTTP", "HTTPS"])
    for header in action.get("httpHeaders") or ():
        if wrong := pod_value_rules.header_name_error(header.get("name", "")):
            yield field_errors.invalid(f"{path}.httpHeaders", header.get("name", ""), wrong)


def _port(port: int | str, path: str) -> Iterator[Cause]:
    wrong = (
        pod_value_rules.port_name_errors(port) if isinstance(port, str) else [pod_value_rules.port_number_error(port)]
    )
    for why in wrong:
        if why:
            yield field_errors.invalid(path, port, why)
