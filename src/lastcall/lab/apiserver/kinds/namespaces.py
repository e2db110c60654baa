"""Namespaces: they end in two steps, and what is in them goes between the two (``pkg/registry/core/namespace``)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from lastcall.lab.apiserver import deletion, fields, meta, names
from lastcall.lab.apiserver.kinds.base import Behaviour, Fate, Options, Outcome, keep
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.status import Cause, conflict

FINALIZER = "kubernetes"
"""In ``spec.finalizers`` until the namespace controller has emptied the namespace."""
NAME_LABEL = "kubernetes.io/metadata.name"
INITIAL = ("default", "kube-node-lease", "kube-public", "kube-system")
"""Those that every cluster has from its beginning."""

_STANDARD = (FINALIZER, meta.ORPHAN, meta.FOREGROUND)


class Namespace(Behaviour):
    """The label says the name, so that selectors can ask for it."""

    has_status = True

    def default(self, obj: Object) -> None:
        """The label cannot be taken away, and a namespace is active unless it says otherwise."""
        metadata = obj.setdefault("metadata", {})
        if name := metadata.get("name"):
            metadata["labels"] = {**(metadata.get("labels") or {}), NAME_LABEL: name}
        obj["spec"] = obj.get("spec") or {}
        status = obj["status"] = obj.get("status") or {}
        status["phase"] = status.get("phase") or "Active"

    def prepare_create(self, obj: Object) -> None:
        """A namespace begins as active, and what is in it keeps it."""
        self.default(obj)
        obj["status"] = {"phase": "Active"}
        present = obj["spec"].get("finalizers") or []
        obj["spec"]["finalizers"] = present if FINALIZER in present else [*present, FINALIZER]

    def prepare_update(self, new: Object, old: Object) -> None:
        """What keeps it is changed by ``finalize`` alone."""
        keep(new, old, "status")
        keep(new.setdefault("spec", {}), old["spec"], "finalizers")

    def prepare_status(self, new: Object, old: Object) -> None:
        """Metadata can be written with the status."""
        keep(new, old, "spec")

    def prepare_part(self, part: str, new: Object, old: Object) -> None:
        """``finalize``: all but the status."""
        keep(new, old, "status")

    def validate_name(self, name: str) -> str:
        """RFC 1123 label."""
        return names.label(name)

    def validate(self, obj: Object) -> Iterator[Cause]:
        """``ValidateNamespace``."""
        for index, name in enumerate(obj["spec"].get("finalizers") or ()):
            yield from _check_finalizer(name, f"spec.finalizers[{index}]")

    def validate_status(self, new: Object, old: Object) -> Iterator[Cause]:
        """The phase says whether the namespace is being deleted (``ValidateNamespaceStatusUpdate``)."""
        phase, ending = (new.get("status") or {}).get("phase"), "deletionTimestamp" in new["metadata"]
        if not ending and phase != "Active":
            yield fields.invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")
        if ending and phase != "Terminating":
            yield fields.invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")

    def validate_part(self, part: str, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateNamespaceFinalizeUpdate``."""
        return self.validate(new)

    def fields(self, obj: Object) -> Mapping[str, str]:
        """``name`` is another word for ``metadata.name``."""
        name, phase = obj["metadata"].get("name", ""), (obj.get("status") or {}).get("phase", "")
        return {"name": name, "status.phase": phase}

    def held(self, obj: Object) -> bool:
        """Until it is empty."""
        return bool((obj.get("spec") or {}).get("finalizers"))

    def outcome(self, obj: Object, options: Options, wall: float) -> Outcome | None:
        """The first deletion marks it, those until it is empty change nothing, and then the general rules hold."""
        metadata = obj["metadata"]
        _preconditions(metadata, options)
        if metadata.get("deletionTimestamp"):
            return Outcome(Fate.STAYS, obj, options) if self.held(obj) else None
        metadata["deletionTimestamp"] = meta.timestamp(wall)
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
        kept = deletion.finalizers(metadata.get("finalizers") or [], options, self.dependents)
        metadata.pop("finalizers", None)
        if kept:
            metadata["finalizers"] = kept
        return Outcome(Fate.WAITS, obj, replace(options, uid=metadata["uid"]), marked=True)


def initial(name: str, *, uid: str, wall: float) -> Object:
    """A namespace as the API server makes it for itself when it begins."""
    namespace: Object = {"metadata": {"name": name, "uid": uid, "creationTimestamp": meta.timestamp(wall)}}
    Namespace().prepare_create(namespace)
    return namespace


def _preconditions(metadata: Object, options: Options) -> None:
    found = {"UID": metadata["uid"], "ResourceVersion": metadata["resourceVersion"]}
    for what, said in (("UID", options.uid), ("ResourceVersion", options.revision)):
        if said is not None and said != found[what]:
            why = f"Precondition failed: {what} in precondition: {said}, {what} in object meta: {found[what]}"
            raise conflict("namespaces", "", metadata["name"], why)


def _check_finalizer(name: str, path: str) -> Iterator[Cause]:
    if wrong := names.qualified(name):
        yield fields.invalid(path, name, wrong)
    if "/" not in name and name not in _STANDARD:
        yield fields.invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")
