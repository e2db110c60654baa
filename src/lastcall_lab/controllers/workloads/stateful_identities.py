"""The identities of a StatefulSet: a name, a number and volumes for each pod (``statefulset/stateful_set_utils.go``)."""

import re

from lastcall_lab.controllers.framework.view import Object
from lastcall_lab.controllers.objects import pods
from lastcall_lab.controllers.objects.ownership import OwnerKind, object_labels
from lastcall_lab.controllers.workloads import revision_history

NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"

_NAME = re.compile(r"(.*)-([0-9]+)")


def split_name(name: str) -> tuple[str, int]:
    """The set's name and the number that a pod's name says; -1 if it says none."""
    found = _NAME.fullmatch(name)
    return (found[1], int(found[2])) if found else ("", -1)


def pod_ordinal(pod: Object) -> int:
    """The pod's number."""
    return split_name(pod["metadata"]["name"])[1]


def set_ordinals(wanted: Object) -> range:
    """Those that the set should have pods of."""
    start = (wanted["spec"].get("ordinals") or {}).get("start", 0)
    return range(start, start + wanted["spec"]["replicas"])


def pod_name(wanted: Object, ordinal: int) -> str:
    """The name of the pod with that number."""
    return f"{wanted['metadata']['name']}-{ordinal}"


def claim_names(wanted: Object, ordinal: int) -> dict[str, str]:
    """The names of the claims of one number, by the names of their templates, which are those of the volumes."""
    templates = wanted["spec"].get("volumeClaimTemplates") or ()
    names = [one["metadata"]["name"] for one in templates]
    return {name: f"{name}-{pod_name(wanted, ordinal)}" for name in names}


def revision_of(pod: Object) -> str:
    """The name of the revision that it is of."""
    return object_labels(pod).get(revision_history.LABEL, "")


def new_identity_pod(wanted: Object, kind: OwnerKind, ordinal: int, revision: Object) -> Object:
    """The pod with that number, of one revision of the template."""
    template, name = revision_history.template_of(revision), pod_name(wanted, ordinal)
    pod = pods.pod_from_template(template, wanted, kind.api_version, kind.kind)
    pod["metadata"]["name"] = name
    pod["metadata"]["labels"] |= {
        NAME_LABEL: name,
        INDEX_LABEL: str(ordinal),
        revision_history.LABEL: revision["metadata"]["name"],
    }
    spec, claims = pod["spec"], claim_names(wanted, ordinal)
    spec["hostname"] = name
    if service := wanted["spec"].get("serviceName"):
        spec["subdomain"] = service
    own = [{"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claims.items()]
    volumes = [*own, *(one for one in spec.get("volumes") or () if one["name"] not in claims)]
    if volumes:
        spec["volumes"] = volumes
    return pod


def missing_labels(pod: Object) -> dict[str, str]:
    """Those by which services select one pod, where somebody has taken them away."""
    name = pod["metadata"]["name"]
    return {} if object_labels(pod).get(NAME_LABEL) == name else {NAME_LABEL: name, INDEX_LABEL: str(pod_ordinal(pod))}
