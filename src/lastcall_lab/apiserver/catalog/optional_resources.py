"""Resources that are served on request only, as kube-apiserver serves alpha versions with ``--runtime-config``."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from lastcall.errors import InvalidInput
from lastcall_lab.apiserver.kinds.eviction_requests import EvictionKind, EvictionRequestKind
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.resources.scheme import ServedResource

LIFECYCLE: Final = "lifecycle.k8s.io/v1alpha1"
OPTIONAL: Final = (LIFECYCLE,)
"""All API versions that may be served besides the built-in ones."""

_API_SERVICES: Final = ServedResource(
    "apiregistration.k8s.io",
    "v1",
    "apiservices",
    "APIService",
    KindBehaviour(),
    namespaced=False,
    subresources=("status",),
    singular="apiservice",
    verbs=("get", "list", "watch"),
)
"""An object says that a version is served, to an admission policy for example. There are those of ``OPTIONAL`` alone."""

_ON: Final[Mapping[str, bool]] = {"": True, "true": True, "false": False}


def read_runtime_config(text: str) -> Sequence[str]:
    """The versions that a ``--runtime-config`` switches on: ``GROUP/VERSION[=true|false]``, separated by commas.

    InvalidInput for any other version, which the lab cannot serve or always serves.
    """
    found: dict[str, bool] = {}
    wrong = []
    for entry in filter(None, text.split(",")):
        version, _, value = entry.partition("=")
        if version not in OPTIONAL:
            wrong.append(f'"{version}" cannot be switched; there is {", ".join(OPTIONAL)}')
        elif value not in _ON:
            wrong.append(f'{version}: "{value}" must be true or false')
        else:
            found[version] = _ON[value]
    if wrong:
        raise InvalidInput("--runtime-config", wrong)
    return [version for version, is_on in found.items() if is_on]


def optional_resources(versions: Sequence[str], wall: Callable[[], float] = lambda: 0.0) -> Sequence[ServedResource]:
    """The resources of these versions, and their APIServices. ``wall`` is the time by which times in objects are checked."""
    return [*_lifecycle(wall), _API_SERVICES] if LIFECYCLE in versions else []


def _lifecycle(wall: Callable[[], float]) -> Sequence[ServedResource]:
    """EvictionRequests (KEP-4563), as Kubernetes 1.37 has them."""
    group, _, version = LIFECYCLE.partition("/")
    kinds = {
        "evictions": ("Eviction", EvictionKind(wall)),
        "evictionrequests": ("EvictionRequest", EvictionRequestKind()),
    }
    return [
        ServedResource(group, version, plural, kind, behaviour, subresources=("status",), singular=kind.lower())
        for plural, (kind, behaviour) in kinds.items()
    ]
