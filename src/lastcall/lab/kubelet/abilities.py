"""What the lab's nodes cannot do whatever the runtime is (pure): told before a pod begins, not passed over in silence."""

from collections.abc import Iterator

from lastcall.adapters.kube.resources import Object
from lastcall.errors import InvalidInput
from lastcall.lab.kubelet import projections
from lastcall.lab.kubelet.containers import every_container, init_containers
from lastcall.lab.kubelet.probes import KINDS as PROBES

VOLUMES = (*projections.KINDS, "emptyDir", "hostPath", "persistentVolumeClaim")
_PROJECTIONS = ("configMap", "secret", "downwardAPI", "serviceAccountToken")
_ASKED = ("exec", "httpGet", "tcpSocket")


def check(pod: Object) -> None:
    """InvalidInput lists every field that cannot be honoured."""
    if violations := [*_volumes(pod), *_containers(pod)]:
        raise InvalidInput(f"pod {pod['metadata']['namespace']}/{pod['metadata']['name']}", violations)


def _volumes(pod: Object) -> Iterator[str]:
    for index, volume in enumerate(pod["spec"].get("volumes") or ()):
        at = f"spec.volumes[{index}]"
        if not any(kind in volume for kind in VOLUMES):
            kind = next((name for name in volume if name != "name"), "")
            yield f"{at}.{kind}: the lab's nodes have no volumes of this kind"
        for part, _ in projections.parts(volume) if "projected" in volume else ():
            if part not in _PROJECTIONS:
                yield f"{at}.projected.{part}: the lab's nodes have no projections of this kind"


def _containers(pod: Object) -> Iterator[str]:
    begin = len(init_containers(pod))
    for number, container in enumerate(every_container(pod)):
        at = f"spec.initContainers[{number}]" if number < begin else f"spec.containers[{number - begin}]"
        for probe in PROBES:
            if probe in container and not any(kind in container[probe] for kind in _ASKED):
                yield f"{at}.{probe}: the lab's nodes ask by exec, httpGet and tcpSocket alone"
        for index, mount in enumerate(container.get("volumeMounts") or ()):
            if mount.get("subPathExpr"):
                yield f"{at}.volumeMounts[{index}].subPathExpr: the lab's nodes know subPath alone"
