"""What one kind does differently from the others; the verbs call it at fixed points, in the order given here."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, NamedTuple

from lastcall_lab.apiserver.values import name_rules
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object


@dataclass(frozen=True)
class DeleteOptions:
    """What a DELETE says, from its body or its query (``meta/v1 DeleteOptions``)."""

    grace: int | None = None
    """Seconds; a negative one means 1."""
    uid: str | None = None
    revision: str | None = None
    orphan: bool | None = None
    """``orphanDependents``, which is older than ``propagation`` and says the same."""
    propagation: str | None = None
    """``Orphan``, ``Background`` or ``Foreground``."""
    dry_run: Sequence[str] = ()
    """``All``, or nothing; any other value is refused."""

    def to_object(self) -> Object:
        """As webhooks are shown them."""
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
    """What becomes of what an object owns when its deletion says nothing about that."""

    DELETED = "the garbage collector deletes them"
    ORPHANED = "they stay"
    NONE = "it owns nothing, and the garbage collector's finalizers are never set"


class DeletionFate(Enum):
    """What becomes of an object that is deleted."""

    REMOVED_NOW = "it is removed now"
    MARKED_FOR_LATER = "it is marked, and goes later"
    UNCHANGED = "it is being deleted already, and nothing changes"


class DeletionOutcome(NamedTuple):
    """Of a deletion."""

    fate: DeletionFate
    obj: Object
    """The object, marked if that is how it goes or waits."""
    options: DeleteOptions
    """With the grace period that counts."""
    marked: bool = False
    """Whether the mark is a version of its own, which watches see before the end."""


class KindBehaviour:
    """Nothing particular. Objects are JSON with kind and apiVersion; methods change them in place.

    Order when creating: default, (mutating admission), default if webhooks have seen it, prepare_create, validate. When
    updating: default_change, prepare_update or prepare_status, (mutating admission), default if webhooks have seen it,
    validate_update or validate_status.
    """

    has_generation: ClassVar[bool] = False
    """Whether ``metadata.generation`` counts the changes of what is wanted."""
    has_status: bool = False
    """Whether ``status`` is written by its subresource alone."""
    needs_revision: ClassVar[bool] = False
    """Whether an update must say which version it replaces."""
    status_after_delete: ClassVar[bool] = True
    """Whether a deletion is answered by a Status instead of by the object."""
    status_keeps: ClassVar[Sequence[str]] = ("labels", "annotations", "finalizers", "ownerReferences")
    """The metadata that the status subresource cannot change."""
    known_finalizers: ClassVar[bool] = True
    """Whether a finalizer without a domain must be one of Kubernetes' own."""
    hidden_annotations: ClassVar[Sequence[str]] = ()
    """Annotations that are fields within the server, so that neither tables nor metadata alone show them."""
    deprecation: str = ""
    """What every client of the kind is told."""
    dependents: ClassVar[DependentsPolicy] = DependentsPolicy.DELETED
    """What becomes of what the object owns, unless the deletion says so."""
    leaves_alone: ClassVar[bool] = False
    """Whether its methods change nothing in place within the parts of a new object that are as they were stored."""
    creates_on_update: ClassVar[bool] = False
    """Whether a PUT of a name that is not there creates the object."""

    def default(self, obj: Object) -> None:
        """Fills in what the client has left out."""

    def default_change(self, new: Object, old: Object) -> None:
        """The same for a change: what is as it was has its defaults."""
        self.default(new)

    def prepare_create(self, obj: Object) -> None:
        """Sets what the server decides: an empty status, for instance."""
        if self.has_status:
            obj.pop("status", None)

    def prepare_update(self, new: Object, old: Object) -> None:
        """Takes back what this way of writing may not change: the status, for instance."""
        if self.has_status:
            keep_field(new, old, "status")

    def prepare_status(self, new: Object, old: Object) -> None:
        """The same for the status subresource: all but the status stays as it is."""
        metadata = new["metadata"]
        for name in [name for name in (*new, *old) if name not in ("metadata", "status", "kind", "apiVersion")]:
            keep_field(new, old, name)
        for name in self.status_keeps:
            keep_field(metadata, old["metadata"], name)

    def prepare_part(self, part: str, new: Object, old: Object) -> None:
        """The same for other subresources that are the object itself: ``finalize``, ``resize``."""

    def validate(self, obj: Object) -> Iterable[Cause]:
        """The rules that a new object violates; the rules of metadata that all kinds share are checked elsewhere."""
        return ()

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """The rules that a change violates."""
        return self.validate(new)

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """The rules that a change of the status violates."""
        return ()

    def validate_part(self, part: str, new: Object, old: Object) -> Iterable[Cause]:
        """The rules that a change by such another subresource violates."""
        return self.validate_update(new, old)

    def validate_name(self, name: str) -> str:
        """Why ``name`` cannot be one of this kind; empty if it can."""
        return name_rules.subdomain_error(name)

    def warnings(self, obj: Object) -> Iterable[str]:
        """What the client should know about what it has written."""
        return ()

    def update_warnings(self, new: Object, old: Object) -> Iterable[str]:
        """The same after a change."""
        return self.warnings(new)

    def deletion_warnings(self, options: DeleteOptions) -> Iterable[str]:
        """What the client should know about what it deletes."""
        return ()

    def fields(self, obj: Object) -> Mapping[str, str]:
        """What field selectors can ask for besides ``metadata.name`` and ``metadata.namespace``."""
        return {}

    def selectable_fields(self) -> Collection[str]:
        """The fields by which objects can be selected, besides name and namespace."""
        return self.fields({"metadata": {}}).keys()

    def grace(self, obj: Object, options: DeleteOptions) -> int | None:
        """Seconds until an object that is deleted goes; None for kinds that know no such thing, and go at once."""
        return None

    def outcome(self, obj: Object, options: DeleteOptions, wall: float) -> DeletionOutcome | None:
        """What a deletion does, for kinds that are deleted by rules of their own; None: the general rules."""
        return None

    def keeps_object(self, obj: Object) -> bool:
        """Whether the kind itself keeps an object that is being deleted, even one without finalizers."""
        return False

    def generation_source(self, obj: Object) -> object:
        """The part of the object whose changes ``generation`` counts."""
        return {name: value for name, value in obj.items() if name not in ("metadata", "status", "kind", "apiVersion")}


def keep_field(new: Object, old: Object, name: str) -> None:
    """The field is in ``new`` as it was in ``old``."""
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)
