"""The strategy of a kind; the registry calls its methods at fixed points, in the order given here."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, NamedTuple

from lastcall.model import name_rules
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object


@dataclass(frozen=True)
class DeleteOptions:
    """The options of a DELETE, from its body or its query (``meta/v1 DeleteOptions``)."""

    grace: int | None = None
    """Seconds; a negative one means 1."""
    uid: str | None = None
    revision: str | None = None
    orphan: bool | None = None
    """``orphanDependents``, the deprecated form of ``propagation``."""
    propagation: str | None = None
    """``Orphan``, ``Background`` or ``Foreground``."""
    dry_run: Sequence[str] = ()
    """``All`` or empty; other values are rejected."""

    def to_object(self) -> Object:
        """The options as webhooks see them."""
        preconditions = _present({"uid": self.uid, "resourceVersion": self.revision})
        said = {
            "gracePeriodSeconds": self.grace,
            "preconditions": preconditions or None,
            "orphanDependents": self.orphan,
            "propagationPolicy": self.propagation,
            "dryRun": list(self.dry_run) or None,
        }
        return {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", **_present(said)}


def _present(fields: Object) -> Object:
    return {name: value for name, value in fields.items() if value is not None}


class DependentsPolicy(Enum):
    """What happens to the dependents of an object if its deletion does not specify that."""

    DELETED = "the garbage collector deletes them"
    ORPHANED = "they stay"
    NONE = "it owns nothing, and the garbage collector's finalizers are never set"


class DeletionFate(Enum):
    """What happens to a deleted object."""

    REMOVED_NOW = "it is removed now"
    MARKED_FOR_LATER = "it is marked, and goes later"
    UNCHANGED = "it is being deleted already, and nothing changes"


class DeletionOutcome(NamedTuple):
    """The outcome of a deletion."""

    fate: DeletionFate
    obj: Object
    """The object; marked if it terminates gracefully or waits."""
    options: DeleteOptions
    """With the effective grace period."""
    marked: bool = False
    """Whether the mark is a version of its own, which watches see before the deletion."""


class KindBehaviour:
    """The default strategy. Objects are JSON with kind and apiVersion; methods change them in place.

    Order at creation: default, (mutating admission), default if webhooks have seen it, prepare_create, validate. At
    update: default_change, prepare_update or prepare_status, (mutating admission), default if webhooks have seen it,
    validate_update or validate_status.
    """

    has_generation: ClassVar[bool] = False
    """Whether ``metadata.generation`` counts changes of the spec."""
    has_status: bool = False
    """Whether only the subresource writes ``status``."""
    needs_revision: ClassVar[bool] = False
    """Whether an update requires a resourceVersion."""
    status_after_delete: ClassVar[bool] = True
    """Whether the response to a deletion is a Status instead of the object."""
    status_keeps: ClassVar[Sequence[str]] = ("labels", "annotations", "finalizers", "ownerReferences")
    """The metadata fields that the status subresource cannot change."""
    known_finalizers: ClassVar[bool] = True
    """Whether finalizers without a domain must be Kubernetes' own."""
    hidden_annotations: ClassVar[Sequence[str]] = ()
    """Annotations that only the server uses; tables and partial metadata do not show them."""
    deprecation: str = ""
    """A warning for every client of the kind."""
    dependents: ClassVar[DependentsPolicy] = DependentsPolicy.DELETED
    """The default policy for dependents."""
    leaves_alone: ClassVar[bool] = False
    """Whether its methods never change unchanged parts of a new object in place."""
    creates_on_update: ClassVar[bool] = False
    """Whether a PUT can create the object."""

    def default(self, obj: Object) -> None:
        """Sets the defaults."""

    def default_change(self, new: Object, old: Object) -> None:
        """Sets the defaults of a change; unchanged parts already have theirs."""
        self.default(new)

    def prepare_create(self, obj: Object) -> None:
        """Sets what the server decides: an empty status, for instance."""
        if self.has_status:
            obj.pop("status", None)

    def prepare_update(self, new: Object, old: Object) -> None:
        """Restores what this operation may not change: the status, for instance."""
        if self.has_status:
            keep_field(new, old, "status")

    def prepare_status(self, new: Object, old: Object) -> None:
        """The same for the status subresource: restores everything except the status."""
        metadata = new["metadata"]
        for name in [name for name in (*new, *old) if name not in ("metadata", "status", "kind", "apiVersion")]:
            keep_field(new, old, name)
        for name in self.status_keeps:
            keep_field(metadata, old["metadata"], name)

    def prepare_part(self, part: str, new: Object, old: Object) -> None:
        """The same for other subresources of the object itself: ``finalize``, ``resize``."""

    def validate(self, obj: Object) -> Iterable[Cause]:
        """The violations in a new object, apart from the common metadata rules."""
        return ()

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """The violations in a change."""
        return self.validate(new)

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """The violations in a status change."""
        return ()

    def validate_part(self, part: str, new: Object, old: Object) -> Iterable[Cause]:
        """The violations in a change through another such subresource."""
        return self.validate_update(new, old)

    def validate_name(self, name: str) -> str:
        """Why ``name`` is invalid for this kind; empty if it is valid."""
        return name_rules.subdomain_error(name)

    def warnings(self, obj: Object) -> Iterable[str]:
        """Warnings for the client about a new object."""
        return ()

    def update_warnings(self, new: Object, old: Object) -> Iterable[str]:
        """Warnings for the client about a change."""
        return self.warnings(new)

    def deletion_warnings(self, options: DeleteOptions) -> Iterable[str]:
        """Warnings for the client about a deletion."""
        return ()

    def fields(self, obj: Object) -> Mapping[str, str]:
        """The values for field selectors besides ``metadata.name`` and ``metadata.namespace``."""
        return {}

    def selectable_fields(self) -> Collection[str]:
        """The names of the fields in field selectors besides name and namespace."""
        return self.fields({"metadata": {}}).keys()

    def grace(self, obj: Object, options: DeleteOptions) -> int | None:
        """The grace period of a deletion in seconds; None for kinds without graceful deletion."""
        return None

    def outcome(self, obj: Object, options: DeleteOptions, wall: float) -> DeletionOutcome | None:
        """The outcome for kinds with their own deletion rules; None: the general rules apply."""
        return None

    def keeps_object(self, obj: Object) -> bool:
        """Whether the kind keeps an object being deleted even without finalizers."""
        return False

    def generation_source(self, obj: Object) -> object:
        """The part of the object whose changes increment ``generation``."""
        return {name: value for name, value in obj.items() if name not in ("metadata", "status", "kind", "apiVersion")}


def keep_field(new: Object, old: Object, name: str) -> None:
    """Restores the field in ``new`` from ``old``."""
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)
