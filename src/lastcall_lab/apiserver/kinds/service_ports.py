"""Validation of a Service's ports (``validateServicePort``), pure."""

from collections.abc import Iterator, Sequence

from lastcall.model import name_rules
from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.kinds.pod_value_rules import port_name_errors
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

PROTOCOLS = ("SCTP", "TCP", "UDP")


def check_ports(ports: Sequence[Object], path: str, *, kind: str) -> Iterator[Cause]:
    """The violations in the ports of a Service of type ``kind``; several ports need names."""
    seen: set[str] = set()
    for index, port in enumerate(ports):
        at, name = f"{path}[{index}]", port.get("name") or ""
        if not name and len(ports) > 1:
            yield field_errors.value_required(f"{at}.name")
        elif name:
            if wrong := name_rules.dns_label_error(name):
                yield field_errors.invalid(f"{at}.name", name, wrong)
            if name in seen:
                yield field_errors.duplicate(f"{at}.name", name)
            seen.add(name)
        yield from common_rules.check_port(port.get("port"), f"{at}.port")
        yield from common_rules.check_one_of(port["protocol"], f"{at}.protocol", *PROTOCOLS)
        yield from _check_target(port["targetPort"], f"{at}.targetPort")
    if kind == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                why = "may not be used when `type` is 'ClusterIP'"
                yield field_errors.forbidden(f"{path}[{index}].nodePort", why)
    yield from _check_twice(ports, path)


def _check_target(target: int | str, path: str) -> Iterator[Cause]:
    if isinstance(target, str):
        for wrong in port_name_errors(target):
            yield field_errors.invalid(path, target, wrong)
    else:
        yield from common_rules.check_port(target, path)


def _check_twice(ports: Sequence[Object], path: str) -> Iterator[Cause]:
    seen: set[tuple[str, str, int]] = set()
    for name in ("nodePort", "port"):
        for index, port in enumerate(ports):
            if not (number := port.get(name)):
                continue
            key = (name, port["protocol"], number)
            if key in seen and name == "nodePort":
                yield field_errors.duplicate(f"{path}[{index}].nodePort", number)
            elif key in seen:
                said = {"Name": "", "Protocol": port["protocol"], "AppProtocol": None, "Port": number}
                yield field_errors.duplicate(f"{path}[{index}]", {**said, "TargetPort": 0, "NodePort": 0})
            seen.add(key)
