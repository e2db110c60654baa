"""The replicas that the owners of pods want (``getExpectedScale`` of the disruption controller), pure."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from lastcall_lab.controllers.framework.view import Object, View, controller_of

RESOURCES = ("deployments.apps", "replicasets.apps", "statefulsets.apps")
"""The resources that the view must contain."""

_KINDS = {"ReplicaSet": "replicasets.apps", "StatefulSet": "statefulsets.apps"}
_GROUP = "apps"


class ScaleUnknown(Exception):
    """The scale cannot be determined; the message is that of Kubernetes."""


class ExpectedScale(NamedTuple):
    """``unmanaged`` are the names of pods without a controller, which cannot be counted."""

    pods: int
    unmanaged: tuple[str, ...]


def expected_scale(pods: Iterable[Object], view: View) -> ExpectedScale:
    """The sum over all owners, each counted once; a Deployment stands for its sets.

    ScaleUnknown if an owner has no scale.
    """
    wanted: dict[str, int] = {}
    asked: set[str] = set()
    unmanaged = []
    for pod in pods:
        owner = controller_of(pod)
        if owner is None:
            unmanaged.append(pod["metadata"]["name"])
        elif owner["uid"] not in asked:
            asked.add(owner["uid"])
            found = _scaled_owner(owner, pod, view)
            wanted[found["metadata"]["uid"]] = found["spec"]["replicas"]
    return ExpectedScale(sum(wanted.values()), tuple(unmanaged))


def _scaled_owner(owner: Mapping[str, Any], pod: Object, view: View) -> Object:
    """The object with the number of replicas."""
    group = owner["apiVersion"].rpartition("/")[0]
    resource = _KINDS.get(owner["kind"]) if group == _GROUP else None
    if resource is None:
        asked = f"{owner['kind'].lower()}s.{group}".rstrip(".")
        raise ScaleUnknown(f"{asked} does not implement the scale subresource")
    found = _exact_owner(owner, resource, pod, view)
    if found is None:
        raise ScaleUnknown(f'found no controllers for pod "{pod["metadata"]["name"]}"')
    above = controller_of(found)
    if above and above["kind"] == "Deployment":
        return _exact_owner(above, "deployments.apps", pod, view) or found
    return found


def _exact_owner(owner: Mapping[str, Any], resource: str, pod: Object, view: View) -> Object | None:
    """The owner with that uid, not a later object of the same name."""
    found = view.get(resource, pod["metadata"]["namespace"], owner["name"])
    return found if found and found["metadata"]["uid"] == owner["uid"] else None
