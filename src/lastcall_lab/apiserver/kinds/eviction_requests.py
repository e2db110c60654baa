"""EvictionRequests and Evictions (``pkg/registry/lifecycle``, ``pkg/apis/lifecycle/validation``, Kubernetes 1.37)."""

import re
from collections.abc import Callable, Iterable, Iterator

from lastcall.model import name_rules
from lastcall_lab.apiserver.kinds import common_rules, eviction_responders
from lastcall_lab.apiserver.kinds.condition_rules import validate_conditions
from lastcall_lab.apiserver.kinds.eviction_status import validate_eviction_status
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

INTENTS = ("Eviction", "Withdrawn")

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID_RULE = "must be a lowercase UUID in 8-4-4-4-12 format"
_MOST_CONDITIONS = 100


class _EvictionObject(KindBehaviour):
    """What the two kinds have in common: an immutable target, and a status of its own."""

    has_generation = True
    has_status = True
    needs_revision = True

    def default(self, obj: Object) -> None:
        """Always has a spec."""
        common_rules.sub_object(obj, "spec")

    def prepare_create(self, obj: Object) -> None:
        """Begins with an empty status."""
        obj["status"] = {}

    def validate(self, obj: Object) -> Iterable[Cause]:
        """The target is required."""
        yield from _validate_target(obj["spec"].get("target") or {})

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """The target is immutable, and then not checked again."""
        yield from common_rules.check_immutable(new["spec"], old["spec"], "spec", "target")

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """The generation that was observed never becomes smaller; conditions are those of ``metav1``."""
        status, before = new.get("status") or {}, old.get("status") or {}
        yield from _validate_generation(status.get("observedGeneration"), before.get("observedGeneration"))
        conditions = status.get("conditions") or ()
        if len(conditions) > _MOST_CONDITIONS:
            yield field_errors.too_many("status.conditions", len(conditions), _MOST_CONDITIONS)
        yield from validate_conditions(conditions, "status.conditions")


class EvictionRequestKind(_EvictionObject):
    """A requester's wish that a pod be evicted. Its conditions may go back."""

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateEvictionRequest``."""
        yield from super().validate(obj)
        spec = obj["spec"]
        if requester := spec.get("requester"):
            yield from eviction_responders.check_name(requester, "spec.requester")
            yield from eviction_responders.check_reserved(requester, "spec.requester")
        else:
            yield field_errors.value_required("spec.requester")
        yield from _validate_intent(spec)

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateEvictionRequestUpdate``: only the intent may change."""
        yield from super().validate_update(new, old)
        yield from common_rules.check_immutable(new["spec"], old["spec"], "spec", "requester")
        yield from _validate_intent(new["spec"])


class EvictionKind(_EvictionObject):
    """How a pod is evicted, one responder after the other. ``wall`` is the server's time, in seconds since 1970."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall

    def validate_status(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateEvictionStatusUpdate``."""
        yield from super().validate_status(new, old)
        yield from validate_eviction_status(new.get("status") or {}, old.get("status") or {}, self._wall())


def _validate_target(target: Object) -> Iterator[Cause]:
    pod = target.get("pod")
    if pod is None:
        yield field_errors.invalid("spec.target", "", "must specify one of: `pod`")
        return
    if not (name := pod.get("name")):
        yield field_errors.value_required("spec.target.pod.name")
    elif wrong := name_rules.subdomain_error(name):
        yield field_errors.invalid("spec.target.pod.name", name, wrong)
    if not (uid := pod.get("uid")):
        yield field_errors.value_required("spec.target.pod.uid")
    elif not _UUID.fullmatch(uid):
        yield field_errors.invalid("spec.target.pod.uid", uid, _UUID_RULE)


def _validate_intent(spec: Object) -> Iterator[Cause]:
    if not (intent := spec.get("intent")):
        yield field_errors.value_required("spec.intent")
    elif intent not in INTENTS:
        yield field_errors.not_supported("spec.intent", intent, INTENTS)


def _validate_generation(new: int | None, old: int | None) -> Iterator[Cause]:
    path = "status.observedGeneration"
    if new is None and old is not None:
        yield field_errors.invalid(path, None, "field cannot be cleared once set")
    elif new is not None and new < 1:
        yield field_errors.invalid(path, new, "must be greater than or equal to 1")
    elif new is not None and old is not None and new < old:
        yield field_errors.invalid(path, new, f"cannot be decreased, must be greater than or equal to {old}")
