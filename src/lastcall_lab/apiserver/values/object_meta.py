"""``metadata``: server-set fields, immutable fields, and the validation rules that all kinds share."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from random import Random

import msgspec

from lastcall.model import name_rules
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
"""``k8s.io/apimachinery/pkg/util/rand``: no vowels and no similar characters."""

_VERSION = 0x4 << 76 | 0x2 << 62
_FREE = (1 << 128) - 1 & ~(0xF << 76 | 0x3 << 62)

_ANNOTATIONS = 256 * 1024
"""Maximum bytes of an object's annotations."""

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
"""The garbage collector's finalizers: it removes them after it has orphaned or deleted the dependents."""

_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
STANDARD_FINALIZERS = (ORPHAN, FOREGROUND, "kubernetes")
"""The only finalizers without a domain."""

_OWNED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation")
_REFUSED = ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")
"""Fields whose change is rejected; changes of the other system fields are silently ignored."""


def timestamp(wall: float) -> str:
    """RFC 3339, whole seconds, UTC."""
    return _timestamp(int(wall))


@lru_cache(maxsize=64)
def _timestamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(wall: float) -> str:
    """RFC 3339 with microseconds, for Leases and Events."""
    return datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_seconds(text: str) -> float:
    """The time of either format."""
    return datetime.fromisoformat(text).timestamp()


def generate_name(prefix: str, random: Random) -> str:
    """``generateName`` with five letters, truncated to a valid label (``names.SimpleNameGenerator``)."""
    return prefix[:58] + "".join(random.choice(_SUFFIX) for _ in range(5))


def new_uid(random: Random) -> str:
    """A version 4 UUID: all bits but those of the version and the variant are random (RFC 9562)."""
    text = f"{random.getrandbits(128) & _FREE | _VERSION:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def fill_system_fields(obj: Object, *, namespace: str, wall: float, random: Random, generation: bool) -> None:
    """Sets the system fields of a new object (``rest.FillObjectMetaSystemFields``)."""
    metadata = obj["metadata"]
    for name in (*_OWNED, "resourceVersion"):
        metadata.pop(name, None)
    if namespace:
        metadata["namespace"] = namespace
    metadata["uid"] = new_uid(random)
    if generation:
        metadata["generation"] = 1
    metadata["creationTimestamp"] = timestamp(wall)


def keep_system_fields(new: Object, old: Object) -> None:
    """Restores the system fields of a changed object (``rest.BeforeUpdate``)."""
    metadata, before = new["metadata"], old["metadata"]
    for name in _OWNED:
        if name in _REFUSED and name in metadata and (name != "deletionTimestamp" or name not in before):
            continue
        if name in before:
            metadata[name] = before[name]
        else:
            metadata.pop(name, None)


def drop_empty_fields(obj: Object) -> None:
    """Drops null and empty maps and lists in metadata, like a typed server."""
    metadata = obj["metadata"]
    for name in [name for name, value in metadata.items() if value in (None, "", {}, [])]:
        del metadata[name]


def deduplicate_owners(obj: Object, when: str = "") -> Iterator[str]:
    """Removes duplicate owner references and returns a warning (``dedupOwnerReferencesAndAddWarning``)."""
    owners: dict[bytes, Object] = {}
    again: list[str] = []
    for owner in obj["metadata"].get("ownerReferences") or ():
        said = msgspec.json.encode(owner, order="sorted")
        if said in owners:
            again.append(str(owner.get("uid", "")))
        else:
            owners[said] = owner
    if again:
        obj["metadata"]["ownerReferences"] = list(owners.values())
        yield (
            f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+,"
            " and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed:"
            f" {', '.join(again)}"
        )


def check_metadata(obj: Object, *, validate_name: Callable[[str], str], namespaced: bool) -> Iterator[Cause]:
    """Validates a new object's metadata (``validation.ValidateObjectMeta``)."""
    metadata = obj["metadata"]
    prefix = metadata.get("generateName", "")
    if prefix and (wrong := validate_name(prefix.rstrip("-.") if len(prefix) > 1 else prefix)):
        yield field_errors.invalid("metadata.generateName", prefix, wrong)
    if name := metadata.get("name", ""):
        if wrong := validate_name(name):
            yield field_errors.invalid("metadata.name", name, wrong)
    else:
        yield field_errors.value_required("metadata.name", "name or generateName is required")
    if namespaced and (namespace := metadata.get("namespace", "")) and (wrong := name_rules.dns_label_error(namespace)):
        yield field_errors.invalid("metadata.namespace", namespace, wrong)
    yield from check_labels(metadata.get("labels") or {}, "metadata.labels")
    yield from check_annotations(metadata.get("annotations") or {}, "metadata.annotations")
    yield from _finalizers(metadata)
    yield from _owners(metadata)


def check_finalizer_names(obj: Object) -> Iterator[Cause]:
    """The additional finalizer rules of built-in kinds (``validation.validateKubeFinalizerName``)."""
    for index, name in enumerate(obj["metadata"].get("finalizers") or ()):
        if "/" not in name and name not in STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            yield field_errors.invalid(f"metadata.finalizers[{index}]", name, why)


def check_labels(labels: Object, path: str) -> Iterator[Cause]:
    """Validates labels of any field."""
    for key, value in labels.items():
        for wrong in name_rules.qualified_name_errors(key):
            yield field_errors.invalid(path, key, wrong)
        if wrong := name_rules.label_value_error(value):
            yield field_errors.invalid(path, value, wrong)


def check_annotations(annotations: Object, path: str) -> Iterator[Cause]:
    """Validates annotations of any field."""
    for key in annotations:
        for wrong in name_rules.qualified_name_errors(key.lower()):
            yield field_errors.invalid(path, key, wrong)
    if sum(len(key) + len(value) for key, value in annotations.items()) > _ANNOTATIONS:
        yield field_errors.too_long(path, _ANNOTATIONS)


def check_metadata_update(new: Object, old: Object) -> Iterator[Cause]:
    """Validates a change of metadata (``validation.ValidateObjectMetaUpdate``)."""
    metadata, before = new["metadata"], old["metadata"]
    if before.get("deletionTimestamp"):
        added = sorted(set(metadata.get("finalizers") or ()) - set(before.get("finalizers") or ()))
        if added:
            why = f"no new finalizers can be added if the object is being deleted, found new finalizers {_go(added)}"
            yield field_errors.forbidden("metadata.finalizers", why)
    for name in _IMMUTABLE:
        if metadata.get(name) != before.get(name):
            yield field_errors.invalid(f"metadata.{name}", metadata.get(name), "field is immutable")
    yield from check_labels(metadata.get("labels") or {}, "metadata.labels")
    yield from check_annotations(metadata.get("annotations") or {}, "metadata.annotations")
    yield from _owners(metadata)


def _go(values: list[str]) -> str:
    """A list of strings like Go's ``%#v``."""
    return "[]string{" + ", ".join(f'"{value}"' for value in values) + "}"


def _finalizers(metadata: Object) -> Iterator[Cause]:
    finalizers = metadata.get("finalizers") or []
    for finalizer in finalizers:
        for wrong in name_rules.qualified_name_errors(finalizer):
            yield field_errors.invalid("metadata.finalizers", finalizer, wrong)
    if {ORPHAN, FOREGROUND} <= set(finalizers):
        why = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        yield field_errors.invalid("metadata.finalizers", finalizers, why)


def _owners(metadata: Object) -> Iterator[Cause]:
    """Validates owner references; Kubernetes' errors do not say which one they mean."""
    path, controller = "metadata.ownerReferences", ""
    owners = metadata.get("ownerReferences") or []
    for owner in owners:
        yield from _owner(owner, path)
        if not owner.get("controller"):
            continue
        said = f"{owner.get('kind', '')}/{owner.get('name', '')}"
        if controller:
            why = (
                'Only one reference can have Controller set to true. Found "true" in references for'
                f" {controller} and {said}"
            )
            yield field_errors.invalid(path, owners, why)
        controller = controller or said


def _owner(owner: Object, path: str) -> Iterator[Cause]:
    version = owner.get("apiVersion", "")
    if not version.rpartition("/")[2] or version.count("/") > 1:
        yield field_errors.invalid(f"{path}.apiVersion", version, "version must not be empty")
    for name in ("kind", "name", "uid"):
        if not owner.get(name):
            yield field_errors.invalid(f"{path}.{name}", owner.get(name, ""), "must not be empty")
    if (version, owner.get("kind")) == ("v1", "Event"):
        yield field_errors.invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner")
