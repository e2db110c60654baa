"""ControllerRevisions: the templates of a StatefulSet or DaemonSet over time (``pkg/controller/history``)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lastcall_lab.controllers.framework.actions import Action, CreateObject, DeleteObject, PatchObject
from lastcall_lab.controllers.framework.view import Object, View, ref_of
from lastcall_lab.controllers.objects.ownership import OwnerKind, claim_objects
from lastcall_lab.controllers.objects.template_hash import short_hash

RESOURCE = "controllerrevisions.apps"
LABEL = "controller-revision-hash"
"""The label of pods with their revision."""

_LONGEST_PREFIX = 223


@dataclass(frozen=True)
class RevisionHistory:
    """``update`` is the revision of the current template, None until ``actions`` have created it."""

    update: Object | None
    revisions: Sequence[Object]
    """All revisions, the oldest first."""
    actions: Sequence[Action] = ()

    def find_revision(self, name: str) -> Object | None:
        """The revision of that name; None if there is none."""
        return next((one for one in self.revisions if one["metadata"]["name"] == name), None)


def revision_history(workload: Object, kind: OwnerKind, view: View, *, label: str) -> RevisionHistory:
    """The history of a workload; ``label`` holds a revision's hash.

    An earlier template gets the newest number again, so that a rollback is a revision too.
    """
    own, patches = claim_objects(workload, kind, RESOURCE, view)
    known = sorted(
        own, key=lambda one: (one["revision"], one["metadata"]["creationTimestamp"], one["metadata"]["name"])
    )
    if patches:
        return RevisionHistory(None, known, patches)
    data, number = data_of(workload), (known[-1]["revision"] if known else 0) + 1
    same = [one for one in known if one.get("data") == data]
    if not same:
        return RevisionHistory(
            None, known, [_create_revision(workload, kind, view, data=data, number=number, label=label)]
        )
    if same[-1] is not known[-1]:
        uid = same[-1]["metadata"]["uid"]
        return RevisionHistory(None, known, [PatchObject(ref_of(RESOURCE, same[-1]), {"revision": number}, uid=uid)])
    return RevisionHistory(same[-1], known)


def template_of(revision: Object) -> Object:
    """The template in a revision."""
    return {name: value for name, value in revision["data"]["spec"]["template"].items() if name != "$patch"}


def expired_revisions(history: RevisionHistory, live: Collection[str], limit: int) -> list[Action]:
    """Deletes the oldest unused revisions beyond the limit; ``live`` are the names of those in use."""
    unused = [one for one in history.revisions if one["metadata"]["name"] not in live]
    surplus = unused[: max(0, len(unused) - limit)]
    return [DeleteObject(ref_of(RESOURCE, one), uid=one["metadata"]["uid"]) for one in surplus]


def data_of(workload: Object) -> Object:
    """A strategic merge patch that restores the template; ``kubectl rollout undo`` applies it."""
    return {"spec": {"template": {**workload["spec"]["template"], "$patch": "replace"}}}


def _create_revision(
    workload: Object, kind: OwnerKind, view: View, *, data: Object, number: int, label: str
) -> CreateObject:
    metadata = workload["metadata"]
    namespace, template = metadata["namespace"], workload["spec"]["template"]
    collisions = 0
    while view.get(RESOURCE, namespace, _revision_name(workload, short_hash(data, collisions))):
        collisions += 1
    letters = short_hash(data, collisions)
    labels = {**((template.get("metadata") or {}).get("labels") or {}), label: letters}
    made: Object = {
        "metadata": {
            "name": _revision_name(workload, letters),
            "namespace": namespace,
            "labels": labels,
            "annotations": dict(metadata.get("annotations") or {}),
            "ownerReferences": [kind.controller_reference(workload)],
        },
        "data": data,
        "revision": number,
    }
    return CreateObject(RESOURCE, namespace, made)


def _revision_name(workload: Object, letters: str) -> str:
    return f"{workload['metadata']['name'][:_LONGEST_PREFIX]}-{letters}"
