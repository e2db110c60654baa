"""The values that an enum field accepts, as text for messages (pure)."""

from typing import Any

from msgspec import inspect


def choices_text(type_: Any, path: tuple[str | int, ...]) -> str:
    """``A, B or C`` for an enum at ``path`` within a type that msgspec supports; empty for everything else."""
    words = _choice_words(inspect.type_info(type_), path)
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else "".join(words)


def _choice_words(found: inspect.Type, path: tuple[str | int, ...]) -> list[str]:
    match found:
        case inspect.Metadata():
            return _choice_words(found.type, path)
        case inspect.UnionType():
            return next((words for one in found.types if (words := _choice_words(one, path))), [])
        case inspect.EnumType() if not path:
            return [str(one.value) for one in found.cls]
        case inspect.StructType() if path:
            fields = (one for one in found.fields if one.encode_name == path[0])
            return next((_choice_words(one.type, path[1:]) for one in fields), [])
        case inspect.DictType() if path:
            return _choice_words(found.value_type, path[1:])
        case inspect.ListType() | inspect.VarTupleType() if path:
            return _choice_words(found.item_type, path[1:])
    return []
