"""What the settings of all providers have in common: how they are checked, and how they name a Secret (pure)."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Meta

from lastcall.errors import InvalidInput
from lastcall.model.base import Facts
from lastcall.model.decoding import convert_readable, quote_value

Port = Annotated[int, Meta(ge=1, le=65535)]
TimeoutSeconds = Annotated[int, Meta(ge=1, le=20)]
"""A call of a provider takes at most 30 seconds (``guard.controller``), and may ask more than once."""


class SecretSource(Facts, frozen=True):
    """A value in a Secret of the GuardPolicy's namespace; ``key`` has a default that its field says."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
    key: Annotated[str, Meta(pattern=r"^[-._a-zA-Z0-9]*$", max_length=253)] = ""


class ProviderSettings(Facts, frozen=True):
    """The settings of a provider."""

    def list_violations(self) -> Iterator[str]:
        """Rules that the types do not express: field, value and rule."""
        yield from ()


S = TypeVar("S", bound=ProviderSettings)


def list_setting_violations(settings: dict[str, Any], type_: type[ProviderSettings], at: str) -> list[str]:
    """Each violation with field (``at`` precedes it), value and rule. An unknown field is one: nothing would use it."""
    unknown = list(_unknown_fields(settings, type_, at))
    found, violations = convert_readable(settings, type_, at=at)
    more = [f"{at}.{one}" for one in found.list_violations()] if found and not violations else []
    return [*violations, *unknown, *more]


def read_settings(settings: dict[str, Any], type_: type[S], at: str) -> S:
    """The settings; InvalidInput with every violation."""
    if violations := list_setting_violations(settings, type_, at):
        raise InvalidInput("GuardPolicy", violations)
    found, _ = convert_readable(settings, type_)
    assert found is not None
    return found


def _unknown_fields(value: Any, type_: type[msgspec.Struct], at: str) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    hints = get_type_hints(type_)
    known = {one.encode_name: hints[one.name] for one in msgspec.structs.fields(type_)}
    for name, item in value.items():
        if name not in known:
            close = get_close_matches(str(name), known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
            yield f"{at}.{name}: {quote_value(item)}: unknown field, {hint}"
        elif nested := _nested_struct(known[name]):
            yield from _unknown_fields(item, nested, f"{at}.{name}")


def _nested_struct(hint: Any) -> type[msgspec.Struct] | None:
    for one in (hint, *get_args(hint)):
        if isinstance(one, type) and issubclass(one, msgspec.Struct):
            return one
    return None
