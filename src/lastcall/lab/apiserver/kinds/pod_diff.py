"""What differs between two specs of pods, as Kubernetes tells it: a diff of its own types, written as JSON (pure).

Those types are much like the API's, with other names for the fields, and with all that is not set written out. The
diff is for people, who look for the field in it that they must not change.
"""

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.schema.types import Node, Types

_ACRONYMS = frozenset("api aws csi dns fc fs gce grpc http ip iscsi nfs os rbd se tcp tty uid".split())  # noqa: SIM905
_NAMES = {"cephfs": "CephFS", "storageos": "StorageOS"}
_HOST = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""Of the spec in the API, of the security context within Kubernetes."""

_SPEC = (
    *("volumes", "initContainers", "containers", "ephemeralContainers", "restartPolicy"),
    *("terminationGracePeriodSeconds", "activeDeadlineSeconds", "dnsPolicy", "nodeSelector", "serviceAccountName"),
    *("automountServiceAccountToken", "nodeName", "securityContext", "imagePullSecrets", "hostname", "subdomain"),
    *("setHostnameAsFQDN", "affinity", "schedulerName", "tolerations", "hostAliases", "priorityClassName", "priority"),
    *("preemptionPolicy", "dnsConfig", "readinessGates", "runtimeClassName", "overhead", "enableServiceLinks"),
    *("topologySpreadConstraints", "os", "schedulingGates", "resourceClaims", "resources", "hostnameOverride"),
)
_TAGGED = "v1.LabelSelector"
"""A type of Kubernetes that is the API's own."""


def spec_diff(old: Object, new: Object) -> str:
    """From the old spec to the new one, in the unified form, with three lines around each change."""
    lines = difflib.unified_diff(_lines(old), _lines(new), n=3, lineterm="\n")
    return "".join([*lines][2:])


def _lines(spec: Object) -> Sequence[str]:
    node = _pod_spec()
    context = node.fields["securityContext"]
    host = _written(spec, node.fields, _HOST)
    shown = _written(spec, node.fields, _SPEC)
    if "securityContext" in spec:
        shown["SecurityContext"] = {**host, **_written(spec["securityContext"], context.fields, context.fields)}
    text = json.dumps(shown, indent=1, ensure_ascii=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.splitlines(keepends=True)


@cache
def _pod_spec() -> Node:
    pod = Types().find("", "v1", "Pod")
    spec = pod.at("spec") if pod else None
    if spec is None:
        raise LookupError("the table of types has no pods")
    return spec


def _written(obj: Object, fields: Mapping[str, Node], names: Iterable[str]) -> Object:
    return {_name(name): _value(obj.get(name), fields[name]) for name in names}


def _value(value: Any, node: Node) -> Any:
    if value is None and (node.kind in ("list", "map") or node.write in ("set", "null")):
        return None
    if node.kind == "struct" and node.go != _TAGGED:
        return _written(value or {}, node.fields, node.fields)
    if value is None:
        return node.zero()
    if node.element and node.kind == "list":
        return [_value(one, node.element) for one in value]
    return dict(sorted(value.items())) if node.kind == "map" else value


def _name(name: str) -> str:
    """The name of a field in Go."""
    first = re.match("[a-z]*", name)
    word = first[0] if first else ""
    return _NAMES.get(name) or (word.upper() if word in _ACRONYMS else word.capitalize()) + name[len(word) :]
