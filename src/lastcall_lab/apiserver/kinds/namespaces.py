"""Namespaces, which are deleted in two steps with their content in between (``pkg/registry/core/namespace``)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from lastcall.model import name_rules
from lastcall_lab.apiserver.resources import deletion_rules
from lastcall_lab.apiserver.resources.kind_behaviour import (
    DeleteOptions,
    DeletionFate,
    DeletionOutcome,
    KindBehaviour,
    keep_field,
)
from lastcall_lab.apiserver.values import field_errors, object_meta
from lastcall_lab.apiserver.values.api_errors import Cause, conflict_error
from lastcall_lab.apiserver.values.request import Object

FINALIZER = "kubernetes"
"""The entry in ``spec.finalizers`` until the namespace controller has emptied the namespace."""
NAME_LABEL = "kubernetes.io/metadata.name"
INITIAL = ("default", "kube-node-lease", "kube-public", "kube-system")
"""The namespaces of every new cluster."""

_STANDARD = (FINALIZER, object_meta.ORPHAN, object_meta.FOREGROUND)


class NamespaceKind(KindBehaviour):
    """Has a label with its name for selectors."""

    has_status = True

    def default(self, obj: Object) -> None:
        """Always sets that label; the default phase is Active."""
        metadata = obj.setdefault("metadata", {})
        if name := metadata.get("name"):
            metadata["labels"] = {**(metadata.get("labels") or {}), NAME_LABEL: name}
        obj["spec"] = obj.get("spec") or {}
        status = obj["status"] = obj.get("status") or {}
        status["phase"] = status.get("phase") or "Active"

    def prepare_create(self, obj: Object) -> None:
        """Starts Active, with the finalizer ``kubernetes``."""
        self.default(obj)
        obj["status"] = {"phase": "Active"}
        present = obj["spec"].get("finalizers") or []
        obj["spec"]["finalizers"] = present if FINALIZER in present else [*present, FINALIZER]

    def prepare_update(self, new: Object, old: Object) -> None:
        """Only ``finalize`` changes spec.finalizers."""
        keep_field(new, old, "status")
        keep_field(new.setdefault("spec", {}), old["spec"], "finalizers")

    def prepare_status(self, new: Object, old: Object) -> None:
        """A status write can change metadata."""
        keep_field(new, old, "spec")

    def prepare_part(self, part: str, new: Object, old: Object) -> None:
        """``finalize``: keeps the status."""
        keep_field(new, old, "status")

    def validate_name(self, name: str) -> str:
        """RFC 1123 label."""
        return name_rules.dns_label_error(name)

    def validate(self, obj: Object) -> Iterator[Cause]:
        """``ValidateNamespace``."""
        for index, name in enumerate(obj["spec"].get("finalizers") or ()):
            yield from _check_finalizer(name, f"spec.finalizers[{index}]")

    def validate_status(self, new: Object, old: Object) -> Iterator[Cause]:
        """The phase must match the deletion timestamp (``ValidateNamespaceStatusUpdate``)."""
        phase, ending = (new.get("status") or {}).get("phase"), "deletionTimestamp" in new["metadata"]
        if not ending and phase != "Active":
            yield field_errors.invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")
        if ending and phase != "Terminating":
            yield field_errors.invalid(
                "status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty"
            )

    def validate_part(self, part: str, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateNamespaceFinalizeUpdate``."""
        return self.validate(new)

    def fields(self, obj: Object) -> Mapping[str, str]:
        """``name`` is a synonym of ``metadata.name``."""
        name, phase = obj["metadata"].get("name", ""), (obj.get("status") or {}).get("phase", "")
        return {"name": name, "status.phase": phase}

    def keeps_object(self, obj: Object) -> bool:
        """Until spec.finalizers is empty."""
        return bool((obj.get("spec") or {}).get("finalizers"))

    def outcome(self, obj: Object, options: DeleteOptions, wall: float) -> DeletionOutcome | None:
        """The first deletion marks the namespace.

        Later deletions have no effect until it is empty; then the general rules apply.
        """
        metadata = obj["metadata"]
        _preconditions(metadata, options)
        if metadata.get("deletionTimestamp"):
            return DeletionOutcome(DeletionFate.UNCHANGED, obj, options) if self.keeps_object(obj) else None
        metadata["deletionTimestamp"] = object_meta.timestamp(wall)
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
        kept = deletion_rules.resulting_finalizers(metadata.get("finalizers") or [], options, self.dependents)
        metadata.pop("finalizers", None)
        if kept:
            metadata["finalizers"] = kept
        return DeletionOutcome(DeletionFate.MARKED_FOR_LATER, obj, replace(options, uid=metadata["uid"]), marked=True)


def initial_namespace(name: str, *, uid: str, wall: float) -> Object:
    """A namespace that the API server creates at startup."""
    namespace: Object = {"metadata": {"name": name, "uid": uid, "creationTimestamp": object_meta.timestamp(wall)}}
    NamespaceKind().prepare_create(namespace)
    return namespace


def _preconditions(metadata: Object, options: DeleteOptions) -> None:
    found = {"UID": metadata["uid"], "ResourceVersion": metadata["resourceVersion"]}
    for what, said in (("UID", options.uid), ("ResourceVersion", options.revision)):
        if said is not None and said != found[what]:
            why = f"Precondition failed: {what} in precondition: {said}, {what} in object meta: {found[what]}"
            raise conflict_error("namespaces", "", metadata["name"], why)


def _check_finalizer(name: str, path: str) -> Iterator[Cause]:
    if wrong := name_rules.qualified_name_error(name):
        yield field_errors.invalid(path, name, wrong)
    if "/" not in name and name not in _STANDARD:
        yield field_errors.invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")
