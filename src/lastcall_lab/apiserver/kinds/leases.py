"""Leases (``pkg/apis/coordination``)."""

from collections.abc import Iterable

from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object


class LeaseKind(KindBehaviour):
    """Who holds a lock, and until when; also node heartbeats."""

    known_finalizers = False
    needs_revision = True
    creates_on_update = True

    def default(self, obj: Object) -> None:
        """Always has a spec."""
        common_rules.sub_object(obj, "spec")

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateLeaseSpec``."""
        spec = obj["spec"]
        seconds = spec.get("leaseDurationSeconds")
        if seconds is not None and seconds <= 0:
            yield field_errors.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
        yield from common_rules.check_not_negative(spec, "spec", "leaseTransitions")
        if spec.get("preferredHolder") and not spec.get("strategy"):
            yield field_errors.forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined")
