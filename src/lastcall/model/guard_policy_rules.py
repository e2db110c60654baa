"""Rules for GuardPolicy objects that the types do not express (pure)."""

from collections.abc import Iterator

from lastcall.model.decoding import quote_value
from lastcall.model.guard_policy import GuardSpec
from lastcall.model.int_or_percent import resolve_portion
from lastcall.model.selectors import selector_violations


def guard_violations(spec: GuardSpec) -> Iterator[str]:
    """Each violation with field, value and rule."""
    if spec.selector:
        yield from selector_violations(spec.selector, "spec.selector")
    try:
        portion = resolve_portion(spec.max_unavailable, 100, up=True)
    except ValueError:
        portion = 0
    if portion < 1:
        rule = "must be a number from 1, or a percentage from 1%"
        yield f"spec.maxUnavailable: {quote_value(spec.max_unavailable)}: {rule}"
