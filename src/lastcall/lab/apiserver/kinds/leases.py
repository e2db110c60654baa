"""Leases (``pkg/apis/coordination``)."""

from collections.abc import Iterable

from lastcall.lab.apiserver import fields
from lastcall.lab.apiserver.kinds import rules
from lastcall.lab.apiserver.kinds.base import Behaviour
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.status import Cause


class Lease(Behaviour):
    """Who holds something, and until when; heartbeats of nodes among them."""

    known_finalizers = False
    needs_revision = True
    creates_on_update = True

    def default(self, obj: Object) -> None:
        """The spec is always there."""
        rules.part(obj, "spec")

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateLeaseSpec``."""
        spec = obj["spec"]
        seconds = spec.get("leaseDurationSeconds")
        if seconds is not None and seconds <= 0:
            yield fields.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
        yield from rules.not_negative(spec, "spec", "leaseTransitions")
        if spec.get("preferredHolder") and not spec.get("strategy"):
            yield fields.forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined")
