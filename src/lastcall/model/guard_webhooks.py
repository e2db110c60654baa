"""The guard's ValidatingWebhookConfiguration, with its webhooks in force or withdrawn (pure).

A configuration is JSON as Python objects, because what is withdrawn must come back exactly, with fields that lastcall does
not know. Withdrawn webhooks are kept in an annotation of the configuration itself: the object is the whole state, so any
controller can put them back. The owners of the fields (``managedFields``) are kept too: otherwise the webhooks would belong
to the controller after their return, and a server-side apply of a changed manifest, such as Helm's, would conflict.
"""

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final

from lastcall.model.base import Facts
from lastcall.names import GUARD_WITHDRAWN, SYSTEM_NAMESPACE

NAME: Final = "lastcall-guard"
"""The name of the configuration, and of the Service that its webhooks are behind."""

_Object = dict[str, Any]


class CopyState(Enum):
    """What the annotation holds."""

    NONE = "there is no copy"
    WHOLE = "there is a copy"
    UNREADABLE = "the copy cannot be read"


class GuardWebhookState(Facts, frozen=True):
    """A configuration, as far as decisions need it."""

    in_force: bool
    """Whether the API server calls any webhook of it."""
    is_behind_service: bool
    """Whether all webhooks in force are behind the guard's Service, whose endpoints tell whether a guard answers."""
    copy: CopyState


def read_webhook_state(configuration: Mapping[str, Any]) -> GuardWebhookState:
    """The state of a configuration as the API server has it."""
    found = _webhooks(configuration)
    return GuardWebhookState(
        in_force=bool(found),
        is_behind_service=all(_is_behind_service(one) for one in found),
        copy=_copy_state(configuration),
    )


def withdrawn_webhooks(configuration: Mapping[str, Any]) -> list[_Object]:
    """The webhooks in the annotation, as new objects; none if there is no copy, or an unreadable one."""
    found = _read_copy(configuration)
    return found["webhooks"] if found else []


def replace_withdrawn_webhooks(configuration: Mapping[str, Any], webhooks: Sequence[_Object]) -> _Object:
    """The configuration with other webhooks in its copy, which must be readable."""
    found = _read_copy(configuration)
    assert found is not None
    return _with_copy(configuration, {**found, "webhooks": list(webhooks)})


def withdraw_webhooks(configuration: Mapping[str, Any]) -> _Object:
    """The configuration without webhooks, and with those in force as its copy.

    Webhooks that were written again while they were withdrawn, as by ``kubectl apply``, lack what the guard itself writes
    (path and authority); they get it from the older copy.
    """
    copy = {
        "webhooks": _completed_webhooks(configuration),
        "managedFields": configuration["metadata"].get("managedFields") or [],
    }
    return {**_with_copy(configuration, copy), "webhooks": []}


def put_back_webhooks(configuration: Mapping[str, Any]) -> _Object:
    """The configuration with its webhooks in force and its copy unchanged, which ``forget_copy`` removes.

    Webhooks that are in force already stay, since whoever wrote them did it later; they are completed from the copy.
    """
    found = _completed_webhooks(configuration) if _webhooks(configuration) else withdrawn_webhooks(configuration)
    return {**configuration, "webhooks": found}


def forget_copy(configuration: Mapping[str, Any]) -> _Object:
    """The configuration without the copy. Its fields belong to whom they belonged before, if nothing else has changed."""
    copy = _read_copy(configuration)
    metadata = {**configuration["metadata"], "annotations": _other_annotations(configuration)}
    if copy and copy.get("managedFields") and copy["webhooks"] == _webhooks(configuration):
        metadata["managedFields"] = copy["managedFields"]
    return {**configuration, "metadata": metadata}


def remove_webhooks(configuration: Mapping[str, Any]) -> _Object | None:
    """The configuration with webhooks neither in force nor withdrawn, as if a person had removed them; None if it has none."""
    if not _webhooks(configuration) and _copy_state(configuration) is CopyState.NONE:
        return None
    metadata = {**configuration["metadata"], "annotations": _other_annotations(configuration)}
    return {**configuration, "metadata": metadata, "webhooks": []}


def _completed_webhooks(configuration: Mapping[str, Any]) -> list[_Object]:
    known = {one["name"]: one["clientConfig"] for one in withdrawn_webhooks(configuration)}
    return [
        {**one, "clientConfig": _complete_client(one["clientConfig"], known.get(one["name"], {}))}
        for one in _webhooks(configuration)
    ]


def _complete_client(client: _Object, known: _Object) -> _Object:
    """A ``clientConfig`` with the authority and the path of a known one, where it has none, if both name one Service."""
    ours, theirs = client.get("service"), known.get("service")
    if not ours or not theirs or any(ours.get(key) != theirs.get(key) for key in ("namespace", "name", "port")):
        return client
    bundle = {name: known[name] for name in ("caBundle",) if known.get(name) and not client.get(name)}
    path = {name: theirs[name] for name in ("path",) if theirs.get(name) and not ours.get(name)}
    return {**client, **bundle, "service": {**ours, **path}}


def _webhooks(configuration: Mapping[str, Any]) -> list[_Object]:
    return configuration.get("webhooks") or []


def _is_behind_service(webhook: Mapping[str, Any]) -> bool:
    service = webhook["clientConfig"].get("service") or {}
    return (service.get("namespace"), service.get("name")) == (SYSTEM_NAMESPACE, NAME)


def _copy_state(configuration: Mapping[str, Any]) -> CopyState:
    if _read_copy(configuration):
        return CopyState.WHOLE
    return CopyState.UNREADABLE if GUARD_WITHDRAWN in _annotations(configuration) else CopyState.NONE


def _read_copy(configuration: Mapping[str, Any]) -> _Object | None:
    """The copy; None if there is none, or if a person has changed it so that it cannot be read."""
    try:
        found = json.loads(_annotations(configuration).get(GUARD_WITHDRAWN) or "null")
    except ValueError:
        return None
    webhooks = found.get("webhooks") if isinstance(found, dict) else None
    if not isinstance(webhooks, list) or not webhooks or not all(map(_is_webhook, webhooks)):
        return None
    return dict(found)


def _is_webhook(found: object) -> bool:
    return (
        isinstance(found, dict) and isinstance(found.get("name"), str) and isinstance(found.get("clientConfig"), dict)
    )


def _with_copy(configuration: Mapping[str, Any], copy: _Object) -> _Object:
    text = json.dumps(copy, separators=(",", ":"), ensure_ascii=False)
    annotations = {**_annotations(configuration), GUARD_WITHDRAWN: text}
    return {**configuration, "metadata": {**configuration["metadata"], "annotations": annotations}}


def _annotations(configuration: Mapping[str, Any]) -> dict[str, str]:
    return configuration["metadata"].get("annotations") or {}


def _other_annotations(configuration: Mapping[str, Any]) -> dict[str, str]:
    return {key: text for key, text in _annotations(configuration).items() if key != GUARD_WITHDRAWN}
