"""The names and priorities of who responds to an Eviction, in pods and in the status of Evictions (pure)."""

from collections.abc import Iterator, Sequence
from typing import Final

from lastcall.model import name_rules
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

EVICTOR: Final = "imperative-eviction.k8s.io/evictor"
"""The responder that every Eviction of a pod has, with ``EVICTOR_PRIORITY``."""
EVICTOR_PRIORITY: Final = 100

HIGHEST_PRIORITY: Final = 100_000
_RESERVED: Final = 1000
_MOST: Final = 10
_DOMAINS: Final = (".k8s.io", ".kubernetes.io")
_NEEDS_DOMAIN: Final = 'must be a domain-prefixed key (such as "acme.io/foo")'


def validate_eviction_responders(spec: Object, path: str) -> Iterator[Cause]:
    """The responders of a pod or template at ``path``."""
    found = spec.get("evictionResponders") or []
    if found and spec.get("schedulingGroup"):
        yield field_errors.forbidden(f"{path}.schedulingGroup", "may not be set together with `evictionResponders`")
    if len(found) > _MOST:
        yield field_errors.too_many(f"{path}.evictionResponders", len(found), _MOST)
        return
    yield from check_unique_names(found, f"{path}.evictionResponders")
    for index, one in enumerate(found):
        yield from _validate_responder(one, f"{path}.evictionResponders[{index}]")


def _validate_responder(one: Object, path: str) -> Iterator[Cause]:
    if name := one.get("name"):
        yield from check_name(name, f"{path}.name")
        yield from check_reserved(name, f"{path}.name")
    else:
        yield field_errors.value_required(f"{path}.name")
    priority = one.get("priority")
    yield from check_priority(priority, f"{path}.priority")
    if priority is not None and 0 <= priority < _RESERVED:
        yield reserved_priority(priority, f"{path}.priority")


def check_name(name: str, path: str) -> Iterator[Cause]:
    """A label key with a domain: ``acme.io/foo``."""
    wrong = name_rules.qualified_name_error(name)
    if not wrong and "/" not in name:
        wrong = _NEEDS_DOMAIN
    if wrong:
        yield field_errors.invalid(path, name, wrong)


def check_reserved(name: str, path: str) -> Iterator[Cause]:
    """The domains of Kubernetes are reserved."""
    domain = name.partition("/")[0].strip().lower().rstrip(".")
    if domain.endswith(_DOMAINS) or f".{domain}" in _DOMAINS:
        reserved = ", ".join(f"*{one}" for one in _DOMAINS)
        yield field_errors.invalid(path, name, f"domain names {reserved} are reserved")


def check_priority(priority: int | None, path: str) -> Iterator[Cause]:
    """A number from 0 to 100000."""
    if priority is None:
        yield field_errors.value_required(path)
    elif priority < 0:
        yield field_errors.invalid(path, priority, "must be greater than or equal to 0")
    elif priority > HIGHEST_PRIORITY:
        yield field_errors.invalid(path, priority, f"must be less than or equal to {HIGHEST_PRIORITY}")


def check_chosen_priority(one: Object, path: str) -> Iterator[Cause]:
    """The priority of a responder of an Eviction: Kubernetes' own have the lowest ones, each a certain one."""
    name, priority = one.get("name", ""), one.get("priority")
    yield from check_priority(priority, path)
    if name == EVICTOR and priority != EVICTOR_PRIORITY:
        why = f"core k8s responder is expected to have priority: {EVICTOR_PRIORITY}"
        yield field_errors.invalid(path, priority, why)
    elif name != EVICTOR and priority is not None and 0 <= priority < _RESERVED:
        yield reserved_priority(priority, path)


def reserved_priority(priority: int, path: str) -> Cause:
    """The violation by a priority that is reserved."""
    return field_errors.invalid(path, priority, "priorities 0-999 are reserved for responders with *.k8s.io suffix")


def check_unique_names(found: Sequence[Object], path: str) -> Iterator[Cause]:
    """Each name occurs once."""
    seen: set[str] = set()
    for index, one in enumerate(found):
        name = one.get("name", "")
        if name in seen:
            yield field_errors.duplicate(f"{path}[{index}]", {"name": name})
        seen.add(name)


def sort_responders(found: Sequence[Object]) -> Sequence[Object]:
    """In the order of their turns: by priority, then by the labels of the domain from the top, then by the key."""
    return sorted(found, key=_turn_key)


def _turn_key(one: Object) -> tuple[bool, int, list[str], str]:
    priority = one.get("priority")
    domain, _, key = one.get("name", "").partition("/")
    return (priority is None, -(priority or 0), domain.split(".")[::-1], key)
