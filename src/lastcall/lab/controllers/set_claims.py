"""The PersistentVolumeClaims of a StatefulSet: made once for each number, and kept or given up as its policy says.

The rules are those of ``statefulset/stateful_pod_control.go`` and KEP-1847: a claim that is to go with the set names the
set as its owner, one that is to go when the set shrinks names the pod that goes; the garbage collector does the rest.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from lastcall.lab.controllers.actions import Action, Create, Patch
from lastcall.lab.controllers.identities import claim_names, number, numbers, pod_name
from lastcall.lab.controllers.owning import Kind
from lastcall.lab.controllers.view import Object, View, ref

RESOURCE = "persistentvolumeclaims"
POD = Kind("v1", "Pod", "pods")


def missing(wanted: Object, kind: Kind, ordinal: int, view: View) -> Iterator[Action]:
    """The claims of one number that are not there yet."""
    namespace, set_name, pod = wanted["metadata"]["namespace"], wanted["metadata"]["name"], pod_name(wanted, ordinal)
    names = claim_names(wanted, ordinal)
    for template in wanted["spec"].get("volumeClaimTemplates") or ():
        name = names[template["metadata"]["name"]]
        if view.get(RESOURCE, namespace, name) is None:
            said = f"create Claim {name} Pod {pod} in StatefulSet {set_name} success"
            why = f"create Claim {name} for Pod {pod} in StatefulSet {set_name} failed error: {{error}}"
            told = kind.tell(wanted, "SuccessfulCreate", said)
            refused = kind.tell(wanted, "FailedCreate", why, "Warning")
            yield Create(RESOURCE, namespace, _made(wanted, template, name), told, refused)


def _made(wanted: Object, template: Object, name: str) -> Object:
    claim = copy.deepcopy(template)
    claim.pop("status", None)
    metadata = claim["metadata"]
    metadata["name"], metadata["namespace"] = name, wanted["metadata"]["namespace"]
    metadata["labels"] = {**(metadata.get("labels") or {}), **(wanted["spec"]["selector"].get("matchLabels") or {})}
    return claim


def unusable(wanted: Object, ordinal: int, view: View) -> bool:
    """Whether a new pod has to wait: one of its claims is going, or goes with an earlier pod of the same name."""
    scaled = _policy(wanted)[1]
    for claim in _present(wanted, ordinal, view):
        if claim["metadata"].get("deletionTimestamp"):
            return True
        if scaled and any(_names(owner, POD, pod_name(wanted, ordinal)) for owner in _owners(claim)):
            return True
    return False


def owned_rightly(wanted: Object, kind: Kind, pod: Object, view: View) -> Iterator[Action]:
    """Changes who owns the claims of a pod where that is not as the policy says."""
    for claim in _present(wanted, number(pod), view):
        owners = _owners(claim)
        if _stale(owners, wanted, kind) or _stale(owners, pod, POD):
            continue
        if _foreign(owners, wanted, kind, pod) and _policy(wanted) != (False, False):
            right = _others(owners, wanted, kind, pod)
            message = (
                f"PersistentVolumeClaim {claim['metadata']['name']} has a conflicting OwnerReference that acts as a"
                " manging controller, the retention policy is ignored for this claim"
            )
            if right != owners:
                yield kind.tell(wanted, "ConflictingController", message, "Warning")
        else:
            right = [*_others(owners, wanted, kind, pod), *_wanted(wanted, kind, pod)]
        if not _same(right, owners):
            metadata = claim["metadata"]
            yield Patch(
                ref(RESOURCE, claim),
                {"metadata": {"ownerReferences": right}},
                uid=metadata["uid"],
                revision=metadata["resourceVersion"],
            )


def _policy(wanted: Object) -> tuple[bool, bool]:
    """Whether claims go with the set, and whether they go when it shrinks."""
    policy = wanted["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get("whenDeleted") == "Delete", policy.get("whenScaled") == "Delete"


def _wanted(wanted: Object, kind: Kind, pod: Object) -> list[Object]:
    deleted, scaled = _policy(wanted)
    condemned = number(pod) not in numbers(wanted)
    if condemned and scaled:
        return [POD.reference(pod)]
    return [kind.reference(wanted)] if deleted else []


def _present(wanted: Object, ordinal: int, view: View) -> list[Object]:
    namespace = wanted["metadata"]["namespace"]
    found = [view.get(RESOURCE, namespace, name) for name in claim_names(wanted, ordinal).values()]
    return [one for one in found if one]


# -- owner references --------------------------------------------------------------------------------------------------

Owner = Mapping[str, Any]


def _owners(claim: Object) -> list[Object]:
    return list(claim["metadata"].get("ownerReferences") or ())


def _names(owner: Owner, kind: Kind, name: str) -> bool:
    return (owner["apiVersion"], owner["kind"], owner["name"]) == (kind.api_version, kind.kind, name)


def _stale(owners: list[Object], obj: Object, kind: Kind) -> bool:
    """Whether an object of the same name that is gone is meant."""
    metadata = obj["metadata"]
    return any(_names(one, kind, metadata["name"]) and one["uid"] != metadata["uid"] for one in owners)


def _foreign(owners: list[Object], wanted: Object, kind: Kind, pod: Object) -> bool:
    """Whether another controller has the claim."""
    return any(one.get("controller") for one in _others(owners, wanted, kind, pod))


def _others(owners: list[Object], wanted: Object, kind: Kind, pod: Object) -> list[Object]:
    names, pod_is = wanted["metadata"]["name"], pod["metadata"]["name"]
    return [one for one in owners if not _names(one, kind, names) and not _names(one, POD, pod_is)]


def _same(right: list[Object], owners: list[Object]) -> bool:
    def known(references: list[Object]) -> list[tuple[str, bool]]:
        return sorted((one["uid"], bool(one.get("controller"))) for one in references)

    return known(right) == known(owners)
