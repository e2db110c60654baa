"""Pod fields that the lab's nodes do not support with any runtime (pure): rejected before start, never ignored."""

from collections.abc import Iterator

from lastcall.adapters.kube.resources import Object
from lastcall.errors import InvalidInput
from lastcall_lab.kubelet.spec import projections
from lastcall_lab.kubelet.state.probe_results import KINDS as PROBES
from lastcall_lab.kubelet.state.start_plan import all_containers, init_containers

VOLUMES = (*projections.KINDS, "emptyDir", "hostPath", "persistentVolumeClaim")
_PROJECTIONS = ("configMap", "secret", "downwardAPI", "serviceAccountToken")
_ASKED = ("exec", "httpGet", "tcpSocket")


def check_supported(pod: Object) -> None:
    """InvalidInput lists every unsupported field."""
    if violations := [*_unsupported_volumes(pod), *_unsupported_containers(pod)]:
        raise InvalidInput(f"pod {pod['metadata']['namespace']}/{pod['metadata']['name']}", violations)


def _unsupported_volumes(pod: Object) -> Iterator[str]:
    for index, volume in enumerate(pod["spec"].get("volumes") or ()):
        at = f"spec.volumes[{index}]"
        if not any(kind in volume for kind in VOLUMES):
            kind = next((name for name in volume if name != "name"), "")
            yield f"{at}.{kind}: the lab's nodes have no volumes of this kind"
        for part, _ in projections.projected_sources(volume) if "projected" in volume else ():
            if part not in _PROJECTIONS:
                yield f"{at}.projected.{part}: the lab's nodes have no projections of this kind"


def _unsupported_containers(pod: Object) -> Iterator[str]:
    begin = len(init_containers(pod))
    for number, container in enumerate(all_containers(pod)):
        at = f"spec.initContainers[{number}]" if number < begin else f"spec.containers[{number - begin}]"
        for probe in PROBES:
            if probe in container and not any(kind in container[probe] for kind in _ASKED):
                yield f"{at}.{probe}: the lab's nodes ask by exec, httpGet and tcpSocket alone"
        for index, mount in enumerate(container.get("volumeMounts") or ()):
            if mount.get("subPathExpr"):
                yield f"{at}.volumeMounts[{index}].subPathExpr: the lab's nodes know subPath alone"
