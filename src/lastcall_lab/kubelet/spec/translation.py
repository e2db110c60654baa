"""Translates the API's pod to the pod for a runtime, with variables and paths resolved (pure)."""

from collections.abc import Iterator, Mapping

from lastcall import names
from lastcall.adapters.kube.resources import Object
from lastcall.model import decoding
from lastcall.model.pods import Container, Pod
from lastcall_lab.kubelet.spec.environment import expand_references
from lastcall_lab.kubelet.spec.projections import Parts
from lastcall_lab.kubelet.state.start_plan import all_containers

Paths = Mapping[str, str]
"""The paths of the volumes on this machine, by name."""


def runtime_pod(pod: Object, *, paths: Paths, address: str, mounts: bool) -> Pod:
    """The pod without variables from other sources; InvalidInput if it cannot be parsed.

    As for a kubelet's runtime its annotations say where it comes from: the API, unless it is a static pod.
    """
    spec, metadata = pod["spec"], pod["metadata"]
    containers = {
        name: [_plain_container(one, paths, {}, mounts=mounts) for one in spec.get(name) or ()] for name in _LISTS
    }
    shown = {
        "metadata": {
            **metadata,
            "annotations": {names.CONFIG_SOURCE: "api", **(metadata.get("annotations") or {})},
        },
        "spec": {**spec, **containers, "volumes": list(_pod_volumes(pod, paths))},
        "status": {"phase": "Running", "podIP": address},
    }
    return decoding.convert(shown, Pod, f"pod {metadata['namespace']}/{metadata['name']}")


def runtime_container(
    container: Object, known: Mapping[str, str], *, paths: Paths, pins: Parts, mounts: bool
) -> Container:
    """A container with its variables, and ``$(NAME)`` in its command line expanded.

    ``pins`` are the volume parts with their own path outside of the volume.
    """
    values = {**({} if mounts else _volume_variables(container, paths, pins)), **known}
    words = {
        name: [expand_references(word, values) for word in container.get(name) or ()] for name in ("command", "args")
    }
    shown = {
        **_plain_container(container, paths, pins, mounts=mounts),
        **{name: line for name, line in words.items() if line},
        "env": [{"name": name, "value": value} for name, value in values.items()],
    }
    return decoding.convert(shown, Container, f"container {container['name']}")


_LISTS = ("initContainers", "containers")


def _plain_container(container: Object, paths: Paths, pins: Parts, *, mounts: bool) -> Object:
    kept = {name: value for name, value in container.items() if name not in ("env", "envFrom", "volumeMounts")}
    return {**kept, "volumeMounts": list(_container_mounts(container, paths, pins, mounts=mounts))}


def _container_mounts(container: Object, paths: Paths, pins: Parts, *, mounts: bool) -> Iterator[Object]:
    """For a runtime that does not mount volumes: the path of each volume that is not already at its mountPath.

    A runtime that mounts them finds out by itself which are block devices.
    """
    for one in container.get("volumeDevices") or () if mounts else ():
        yield {"name": one["name"], "mountPath": one["devicePath"]}
    for one in container.get("volumeMounts") or ():
        mount = {"name": _volume_name(one), "mountPath": one["mountPath"]}
        if mounts or paths.get(one["name"]) == one["mountPath"]:
            yield mount
        elif one["name"] in paths:
            yield {**mount, "hostPath": _full_path(one, paths, pins)}


def _volume_name(mount: Object) -> str:
    """To the runtime, each part of a volume is a volume of its own."""
    part = mount.get("subPath", "")
    return f"{mount['name']}/{part}" if part else mount["name"]


def _pod_volumes(pod: Object, paths: Paths) -> Iterator[Object]:
    for name, path in paths.items():
        yield {"name": name, "hostPath": {"path": path}}
    mounts = [mount for one in all_containers(pod) for mount in one.get("volumeMounts") or ()]
    parts = {_volume_name(mount): mount for mount in mounts if mount.get("subPath") and mount["name"] in paths}
    for mount in parts.values():
        yield {"name": _volume_name(mount), "hostPath": {"path": f"{paths[mount['name']]}/{mount['subPath']}"}}


def _volume_variables(container: Object, paths: Paths, pins: Parts) -> dict[str, str]:
    """Variables that tell a process the paths of its volumes: the volume ``data`` is at ``$VOLUME_DATA``."""
    used = [*(container.get("volumeMounts") or ()), *(container.get("volumeDevices") or ())]
    return {f"VOLUME_{one['name'].upper().replace('-', '_')}": _full_path(one, paths, pins) for one in used}


def _full_path(mount: Object, paths: Paths, pins: Parts) -> str:
    """The path on this machine of a volume, or of the mounted part of one."""
    part = mount.get("subPath", "")
    whole = f"{paths[mount['name']]}/{part}" if part else paths[mount["name"]]
    return pins.get((mount["name"], part), whole)
