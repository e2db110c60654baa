"""One audit line for each irreversible call (pure): what was done to what, by whom, and what allowed it."""

from typing import Any

from lastcall.failover.reporting.controller_events import CallReported, Happening


def audit_entry(happening: Happening, *, by: str, wall: float, now: float) -> dict[str, Any] | None:
    """The fields of the line; None for other happenings. ``now`` and ``wall`` are the same moment on two clocks.

    An order to a fence device has two lines: before (``outcome`` is ``begins``) and after. A call to the API has one,
    after.
    """
    if not isinstance(happening, CallReported):
        return None
    fields: dict[str, Any] = {
        "audit": happening.verb,
        "by": by,
        "began": round(wall - (now - happening.began), 3),
        "node": happening.node,
        "bootID": happening.boot_id,
        "policy": happening.policy,
        "outcome": _call_outcome(happening),
        "why": happening.why,
        "evidence": list(happening.evidence),
    }
    if happening.ended is not None:
        fields["seconds"] = round(happening.ended - happening.began, 3)
    optional = {
        "error": happening.error,
        "fencer": happening.fencer,
        "namespace": happening.namespace,
        "name": happening.name,
        "uid": happening.uid,
    }
    return {**fields, **{name: value for name, value in optional.items() if value}}


def _call_outcome(acted: CallReported) -> str:
    if acted.ended is None:
        return "begins"
    return "failed" if acted.error else "gone" if acted.gone else "done"
