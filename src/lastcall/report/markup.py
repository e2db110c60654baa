"""Markup that escapes automatically: text becomes markup only through ``tag``."""

from html import escape

from lastcall.model.foreign_text import plain_text

_VOID = frozenset({"meta", "line", "path", "rect", "use"})


class Markup(str):
    """Text that is already markup."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """An element, well-formed as HTML and as XML; children and attributes are escaped unless they are ``Markup``.

    A trailing underscore (``class_``, ``for_``) is dropped, other underscores become hyphens; None omits the attribute.
    """
    attribute_text = "".join(
        f' {_attribute_name(key)}="{_escape_text(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{attribute_text}/>")
    return Markup(f"<{name}{attribute_text}>{join(*children)}</{name}>")


def join(*children: str) -> Markup:
    """Joins several pieces; escapes those that are not markup."""
    return Markup("".join(child if isinstance(child, Markup) else _escape_text(child) for child in children))


def _escape_text(text: str) -> str:
    return escape(plain_text(text))


def _attribute_name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")
