"""From the API's pod to the pod that a runtime is given: variables and paths are plain there (pure)."""

from collections.abc import Iterator, Mapping

from lastcall.adapters.kube.resources import Object
from lastcall.model import decoding
from lastcall.model.pods import Container, Pod
from lastcall_lab.kubelet.spec.environment import expand_references
from lastcall_lab.kubelet.spec.projections import Parts
from lastcall_lab.kubelet.state.start_plan import all_containers

Paths = Mapping[str, str]
"""Where the volumes are on this machine, by their names."""


def runtime_pod(pod: Object, *, paths: Paths, address: str, mounts: bool) -> Pod:
    """The pod without variables that come from elsewhere; InvalidInput if it cannot be read."""
    spec = pod["spec"]
    containers = {
        name: [_plain_container(one, paths, {}, mounts=mounts) for one in spec.get(name) or ()] for name in _LISTS
    }
    shown = {
        "metadata": pod["metadata"],
        "spec": {**spec, **containers, "volumes": list(_pod_volumes(pod, paths))},
        "status": {"phase": "Running", "podIP": address},
    }
    return decoding.convert(shown, Pod, f"pod {pod['metadata']['namespace']}/{pod['metadata']['name']}")


def runtime_container(
    container: Object, known: Mapping[str, str], *, paths: Paths, pins: Parts, mounts: bool
) -> Container:
    """A container with its variables, which its command line may mention as ``$(NAME)``.

    ``pins`` are the parts of volumes that it finds elsewhere than in them.
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
    """A runtime that does not mount volumes itself is told of each where it is, unless it is at its own place already."""
    for one in container.get("volumeMounts") or ():
        mount = {"name": _volume_name(one), "mountPath": one["mountPath"]}
        if mounts or paths.get(one["name"]) == one["mountPath"]:
            yield mount
        elif one["name"] in paths:
            yield {**mount, "hostPath": _full_path(one, paths, pins)}


def _volume_name(mount: Object) -> str:
    """Each part of a volume is a volume to the runtime."""
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
    """Where a process finds its volumes: the volume ``data`` at ``$VOLUME_DATA``."""
    found = {}
    for one in container.get("volumeMounts") or ():
        found[f"VOLUME_{one['name'].upper().replace('-', '_')}"] = _full_path(one, paths, pins)
    return found


def _full_path(mount: Object, paths: Paths, pins: Parts) -> str:
    """Where a volume, or the part of one that is mounted, is on this machine."""
    part = mount.get("subPath", "")
    whole = f"{paths[mount['name']]}/{part}" if part else paths[mount["name"]]
    return pins.get((mount["name"], part), whole)
