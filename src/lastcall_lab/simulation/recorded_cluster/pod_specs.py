"""What of a pod's spec is simulated; the rest is taken out, the same from pods and from templates (pure).

Actors run no programs: what only a program would see of its pod (variables, files, identities) decides nothing, and what
it comes from (ConfigMaps, Secrets, service accounts) is not in the file. What decides where a pod may run, how it begins
and how it ends stays.
"""

import re
from collections import Counter
from collections.abc import Iterator

from lastcall_lab.apiserver.values.request import Object

_UNSEEN = (
    "serviceAccountName",
    "serviceAccount",
    "imagePullSecrets",
    "hostAliases",
    "dnsConfig",
    "dnsPolicy",
    "securityContext",
    "ephemeralContainers",
    "os",
    "setHostnameAsFQDN",
    "hostUsers",
    "shareProcessNamespace",
    "overhead",
    "runtimeClassName",
    "resources",
)
_UNSEEN_OF_CONTAINERS = ("env", "envFrom", "securityContext", "volumeDevices", "resizePolicy", "livenessProbe")
_REMARKED = {
    "readinessGates": "readiness gates (they count as passed)",
    "resourceClaims": "resource claims (devices count as there)",
}
_PLAIN_VOLUMES = ("emptyDir", "hostPath", "configMap", "secret", "downwardAPI", "projected", "persistentVolumeClaim")
_SLEEP = re.compile(r"(?:.*/)?sleep (\d+(?:\.\d+)?)(s|m)?")
_SHELLS = ("sh", "bash", "ash", "dash")


def simplify_spec(spec: Object, remarks: Counter[str]) -> None:
    """In place; ``remarks`` counts the pods that lose something which could have decided how they fare."""
    for field, said in _REMARKED.items():
        if spec.pop(field, None):
            remarks[said] += 1
    for field in _UNSEEN:
        spec.pop(field, None)
    if spec.get("schedulerName", "default-scheduler") != "default-scheduler":
        remarks["schedulers of their own (the default one takes their place)"] += 1
    spec |= {"schedulerName": "default-scheduler", "automountServiceAccountToken": False, "enableServiceLinks": False}
    for kind in dict.fromkeys(kind for one in spec.get("volumes") or () for kind in one if kind != "name"):
        if kind not in _PLAIN_VOLUMES:
            remarks[f"volumes of the kind {kind} (they count as there)"] += 1
    volumes = [one for one in spec.pop("volumes", None) or () if "persistentVolumeClaim" in one]
    if volumes:
        spec["volumes"] = volumes
    names = {one["name"] for one in volumes}
    for container in every_container(spec):
        _simplify_container(container, names)


def every_container(spec: Object) -> Iterator[Object]:
    """All of them."""
    for field in ("initContainers", "containers"):
        yield from spec.get(field) or ()


def sleep_seconds(command: tuple[str, ...]) -> float | None:
    """The seconds that a command such as ``sleep 15`` or ``sh -c "sleep 15"`` takes; None for any other."""
    words = list(command)
    if len(words) == 3 and words[0].rpartition("/")[2] in _SHELLS and words[1] == "-c":
        words = words[2].split()
    match = _SLEEP.fullmatch(" ".join(words))
    return float(match[1]) * (60 if match[2] == "m" else 1) if match else None


def _simplify_container(container: Object, volumes: set[str]) -> None:
    for field in _UNSEEN_OF_CONTAINERS:
        container.pop(field, None)
    (container.get("resources") or {}).pop("claims", None)
    if hooks := container.pop("lifecycle", None):
        container |= {"lifecycle": {"preStop": hooks["preStop"]}} if hooks.get("preStop") else {}
    mounts = [_simplify_mount(one) for one in container.pop("volumeMounts", None) or () if one["name"] in volumes]
    if mounts:
        container["volumeMounts"] = mounts
    for probe in ("startupProbe", "readinessProbe"):
        if (container.get(probe) or {}).get("grpc"):
            port = container[probe].pop("grpc")["port"]
            container[probe]["tcpSocket"] = {"port": port}


def _simplify_mount(mount: Object) -> Object:
    return {field: value for field, value in mount.items() if field not in ("subPath", "subPathExpr")}
