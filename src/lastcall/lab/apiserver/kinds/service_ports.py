"""The ports of a Service (``validateServicePort``), pure."""

from collections.abc import Iterator, Sequence

from lastcall.lab.apiserver import fields, names
from lastcall.lab.apiserver.kinds import rules
from lastcall.lab.apiserver.kinds.pod_values import port_name
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.status import Cause

PROTOCOLS = ("SCTP", "TCP", "UDP")


def check_ports(ports: Sequence[Object], path: str, *, kind: str) -> Iterator[Cause]:
    """The rules that the ports of a service of type ``kind`` violate; several ports need names."""
    seen: set[str] = set()
    for index, port in enumerate(ports):
        at, name = f"{path}[{index}]", port.get("name") or ""
        if not name and len(ports) > 1:
            yield fields.required(f"{at}.name")
        elif name:
            if wrong := names.label(name):
                yield fields.invalid(f"{at}.name", name, wrong)
            if name in seen:
                yield fields.duplicate(f"{at}.name", name)
            seen.add(name)
        yield from rules.check_port(port.get("port"), f"{at}.port")
        yield from rules.one_of(port["protocol"], f"{at}.protocol", *PROTOCOLS)
        yield from _check_target(port["targetPort"], f"{at}.targetPort")
    if kind == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                why = "may not be used when `type` is 'ClusterIP'"
                yield fields.forbidden(f"{path}[{index}].nodePort", why)
    yield from _check_twice(ports, path)


def _check_target(target: int | str, path: str) -> Iterator[Cause]:
    if isinstance(target, str):
        for wrong in port_name(target):
            yield fields.invalid(path, target, wrong)
    else:
        yield from rules.check_port(target, path)


def _check_twice(ports: Sequence[Object], path: str) -> Iterator[Cause]:
    seen: set[tuple[str, str, int]] = set()
    for name in ("nodePort", "port"):
        for index, port in enumerate(ports):
            if not (number := port.get(name)):
                continue
            key = (name, port["protocol"], number)
            if key in seen and name == "nodePort":
                yield fields.duplicate(f"{path}[{index}].nodePort", number)
            elif key in seen:
                said = {"Name": "", "Protocol": port["protocol"], "AppProtocol": None, "Port": number}
                yield fields.duplicate(f"{path}[{index}]", {**said, "TargetPort": 0, "NodePort": 0})
            seen.add(key)
