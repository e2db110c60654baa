"""The PersistentVolumeClaims of a StatefulSet: created once per ordinal, and deleted as its policy says.

The rules are those of ``statefulset/stateful_pod_control.go`` and KEP-1847: a claim to be deleted with the set has the
set as owner, and a claim to be deleted at scale-down has the condemned pod as owner. The garbage collector does the
rest.
"""

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from lastcall_lab.controllers.framework.actions import Action, CreateObject, PatchObject
from lastcall_lab.controllers.framework.view import Object, View, ref_of
from lastcall_lab.controllers.objects.ownership import OwnerKind
from lastcall_lab.controllers.workloads.stateful_identities import claim_names, pod_name, pod_ordinal, set_ordinals

RESOURCE = "persistentvolumeclaims"
POD = OwnerKind("v1", "Pod", "pods")


def create_missing_claims(wanted: Object, kind: OwnerKind, ordinal: int, view: View) -> Iterator[Action]:
    """Creates the missing claims of one ordinal."""
    namespace, set_name, pod = wanted["metadata"]["namespace"], wanted["metadata"]["name"], pod_name(wanted, ordinal)
    names = claim_names(wanted, ordinal)
    for template in wanted["spec"].get("volumeClaimTemplates") or ():
        name = names[template["metadata"]["name"]]
        if view.get(RESOURCE, namespace, name) is None:
            said = f"create Claim {name} Pod {pod} in StatefulSet {set_name} success"
            why = f"create Claim {name} for Pod {pod} in StatefulSet {set_name} failed error: {{error}}"
            told = kind.owner_event(wanted, "SuccessfulCreate", said)
            refused = kind.owner_event(wanted, "FailedCreate", why, "Warning")
            yield CreateObject(RESOURCE, namespace, _new_claim(wanted, template, name), told, refused)


def _new_claim(wanted: Object, template: Object, name: str) -> Object:
    claim = copy.deepcopy(template)
    claim.pop("status", None)
    metadata = claim["metadata"]
    metadata["name"], metadata["namespace"] = name, wanted["metadata"]["namespace"]
    metadata["labels"] = {**(metadata.get("labels") or {}), **(wanted["spec"]["selector"].get("matchLabels") or {})}
    return claim


def has_unusable_claim(wanted: Object, ordinal: int, view: View) -> bool:
    """Whether a new pod must wait, because a claim is being deleted or belongs to an earlier pod of that name."""
    scaled = _retention_policy(wanted)[1]
    for claim in _present_claims(wanted, ordinal, view):
        if claim["metadata"].get("deletionTimestamp"):
            return True
        if scaled and any(_names_owner(owner, POD, pod_name(wanted, ordinal)) for owner in _owner_references(claim)):
            return True
    return False


def correct_claim_owners(wanted: Object, kind: OwnerKind, pod: Object, view: View) -> Iterator[Action]:
    """Corrects the owner references of a pod's claims according to the policy."""
    for claim in _present_claims(wanted, pod_ordinal(pod), view):
        owners = _owner_references(claim)
        if _has_stale_owner(owners, wanted, kind) or _has_stale_owner(owners, pod, POD):
            continue
        if _has_foreign_owner(owners, wanted, kind, pod) and _retention_policy(wanted) != (False, False):
            right = _other_owners(owners, wanted, kind, pod)
            message = (
                f"PersistentVolumeClaim {claim['metadata']['name']} has a conflicting OwnerReference that acts as a"
                " manging controller, the retention policy is ignored for this claim"
            )
            if right != owners:
                yield kind.owner_event(wanted, "ConflictingController", message, "Warning")
        else:
            right = [*_other_owners(owners, wanted, kind, pod), *_desired_owners(wanted, kind, pod)]
        if not _are_same_owners(right, owners):
            metadata = claim["metadata"]
            yield PatchObject(
                ref_of(RESOURCE, claim),
                {"metadata": {"ownerReferences": right}},
                uid=metadata["uid"],
                revision=metadata["resourceVersion"],
            )


def _retention_policy(wanted: Object) -> tuple[bool, bool]:
    """Whether claims are deleted with the set, and whether at scale-down."""
    policy = wanted["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get("whenDeleted") == "Delete", policy.get("whenScaled") == "Delete"


def _desired_owners(wanted: Object, kind: OwnerKind, pod: Object) -> list[Object]:
    deleted, scaled = _retention_policy(wanted)
    condemned = pod_ordinal(pod) not in set_ordinals(wanted)
    if condemned and scaled:
        return [POD.controller_reference(pod)]
    return [kind.controller_reference(wanted)] if deleted else []


def _present_claims(wanted: Object, ordinal: int, view: View) -> list[Object]:
    namespace = wanted["metadata"]["namespace"]
    found = [view.get(RESOURCE, namespace, name) for name in claim_names(wanted, ordinal).values()]
    return [one for one in found if one]


# -- owner references --------------------------------------------------------------------------------------------------

Owner = Mapping[str, Any]


def _owner_references(claim: Object) -> list[Object]:
    return list(claim["metadata"].get("ownerReferences") or ())


def _names_owner(owner: Owner, kind: OwnerKind, name: str) -> bool:
    return (owner["apiVersion"], owner["kind"], owner["name"]) == (kind.api_version, kind.kind, name)


def _has_stale_owner(owners: list[Object], obj: Object, kind: OwnerKind) -> bool:
    """Whether it refers to an earlier, deleted object of the same name."""
    metadata = obj["metadata"]
    return any(_names_owner(one, kind, metadata["name"]) and one["uid"] != metadata["uid"] for one in owners)


def _has_foreign_owner(owners: list[Object], wanted: Object, kind: OwnerKind, pod: Object) -> bool:
    """Whether another controller owns the claim."""
    return any(one.get("controller") for one in _other_owners(owners, wanted, kind, pod))


def _other_owners(owners: list[Object], wanted: Object, kind: OwnerKind, pod: Object) -> list[Object]:
    names, pod_is = wanted["metadata"]["name"], pod["metadata"]["name"]
    return [one for one in owners if not _names_owner(one, kind, names) and not _names_owner(one, POD, pod_is)]


def _are_same_owners(right: list[Object], owners: list[Object]) -> bool:
    def known(references: list[Object]) -> list[tuple[str, bool]]:
        return sorted((one["uid"], bool(one.get("controller"))) for one in references)

    return known(right) == known(owners)
