"""What a new pod gets for its end: a ``sleep`` in front of SIGTERM, and its priority as an annotation (pure).

The same as the policies of ``manifests.pod_policies``, for API servers without MutatingAdmissionPolicy; besides, a Service
counts that sends requests to a port which no container declares. CEL cannot see it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from lastcall.model.pod_creation import PodService
from lastcall.model.pods import DEFAULT_GRACE, Container, Pod
from lastcall.names import MIRROR_ANNOTATION, PRIORITY_ANNOTATION, SETTLE_SECONDS, SLEEP_ADDED

Operation = Mapping[str, Any]
"""One operation of a JSON patch (RFC 6902)."""

_NUMBER: Final = re.compile(r"[0-9]{1,3}", re.ASCII)


def is_mirror(pod: Pod) -> bool:
    """Whether it mirrors a static pod, which the API server cannot change."""
    return MIRROR_ANNOTATION in _annotations(pod)


def may_get_sleep(pod: Pod) -> bool:
    """Whether a sleep may be added if the pod serves: not in pods of Jobs, which serve nobody."""
    return (
        not is_mirror(pod)
        and _controller_kind(pod) != "Job"
        and _grace(pod) > 0
        and any(_lacks_hook(one) for one in _lasting_containers(pod))
    )


def settle_seconds(pod: Pod, label: str, default: int) -> int:
    """How long the sleep is: by the pod's annotation, else the namespace's label, else the default; 0 for none."""
    asked = _annotations(pod).get(SETTLE_SECONDS, label)
    seconds = int(asked) if _NUMBER.fullmatch(asked) else default
    return 0 if _controller_kind(pod) is None and _grace(pod) <= seconds else seconds


def declares_service(pod: Pod) -> bool:
    """Whether a container without a preStop hook declares a port."""
    return any(one.ports and _lacks_hook(one) for one in _lasting_containers(pod))


def is_served_undeclared(pod: Pod, services: Iterable[PodService]) -> bool:
    """Whether a Service selects the pod and uses a port of it that no container declares.

    Declared ports are judged by ``declares_service``: their containers' hooks count.
    """
    return any(_selects(one, pod) and _uses_undeclared(one, pod) for one in services)


def add_sleep(pod: Pod, seconds: int) -> list[Operation]:
    """Each container and sidecar without a preStop hook gets the sleep, and the grace period is raised by as much, once.

    The grace period of a pod without a controller stays: ``kubectl apply`` would try to set it back, which is refused.
    """
    raised = _controller_kind(pod) is not None and SLEEP_ADDED not in _annotations(pod)
    grace = _grace(pod) + (seconds if raised else 0)
    return [
        *_add_hooks("containers", pod.spec.containers, seconds),
        *_add_hooks("initContainers", pod.spec.init_containers or (), seconds),
        {"op": "add", "path": "/spec/terminationGracePeriodSeconds", "value": grace},
    ]


def add_annotations(pod: Pod, slept: int) -> list[Operation]:
    """The priority, unless the pod has such an annotation, and the seconds of the sleep, 0 for none."""
    known, wanted = _annotations(pod), dict[str, str]()
    if pod.spec.priority is not None and PRIORITY_ANNOTATION not in known:
        wanted[PRIORITY_ANNOTATION] = str(pod.spec.priority)
    if slept:
        wanted[SLEEP_ADDED] = str(slept)
    if not wanted:
        return []
    if pod.metadata.annotations is None:
        return [{"op": "add", "path": "/metadata/annotations", "value": wanted}]
    return [
        {"op": "add", "path": f"/metadata/annotations/{key.replace('/', '~1')}", "value": text}
        for key, text in wanted.items()
    ]


def _add_hooks(field: str, containers: Sequence[Container], seconds: int) -> list[Operation]:
    hook = {"sleep": {"seconds": seconds}}
    found: list[Operation] = []
    for index, one in enumerate(containers):
        if not _lacks_hook(one) or (field == "initContainers" and not _is_sidecar(one)):
            continue
        path = f"/spec/{field}/{index}/lifecycle"
        if one.lifecycle is None:
            found.append({"op": "add", "path": path, "value": {"preStop": hook}})
        else:
            found.append({"op": "add", "path": f"{path}/preStop", "value": hook})
    return found


def _selects(service: PodService, pod: Pod) -> bool:
    labels, selector = pod.metadata.labels or {}, service.spec.selector
    if not selector or service.spec.type == "ExternalName":
        return False
    return all(labels.get(key) == text for key, text in selector.items())


def _uses_undeclared(service: PodService, pod: Pod) -> bool:
    """A headless Service may have no ports; it then names the pod to clients that know the port."""
    declared = {port.container_port for one in _lasting_containers(pod) for port in one.ports or ()}
    targets = [port.target for port in service.spec.ports or ()]
    return any(isinstance(one, int) and one not in declared for one in targets) or not (targets or declared)


def _lasting_containers(pod: Pod) -> list[Container]:
    """Those that run as long as the pod does: containers and sidecars."""
    return [*pod.spec.containers, *(one for one in pod.spec.init_containers or () if _is_sidecar(one))]


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _lacks_hook(container: Container) -> bool:
    return container.lifecycle is None or container.lifecycle.pre_stop is None


def _grace(pod: Pod) -> int:
    given = pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE if given is None else given


def _controller_kind(pod: Pod) -> str | None:
    """The kind of the object that controls the pod; None if nothing does."""
    return next((one.kind for one in pod.metadata.owner_references or () if one.controller), None)


def _annotations(pod: Pod) -> Mapping[str, str]:
    return pod.metadata.annotations or {}
