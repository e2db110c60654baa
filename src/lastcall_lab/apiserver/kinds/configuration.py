"""ConfigMaps, Secrets, ServiceAccounts and ComponentStatuses (``pkg/apis/core``)."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping

from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.kinds.pod_value_rules import config_key_error
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_LARGEST = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105  (a type of secret)


class ComponentStatusKind(KindBehaviour):
    """The health of control plane components. The lab has one."""

    deprecation = "v1 ComponentStatus is deprecated in v1.19+"


class ConfigMapKind(KindBehaviour):
    """Text and binary data by key."""

    def default(self, obj: Object) -> None:
        """Drops empty maps."""
        _tidy(obj, "data", "binaryData")

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateConfigMap``."""
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        for key in data:
            yield from _check_key(key, "data")
            if key in binary:
                why = "duplicate of key present in binaryData"
                yield field_errors.invalid(f"data[{key}]", key, why)
        for key in binary:
            yield from _check_key(key, "binaryData")
        size = sum(len(text.encode()) for text in data.values()) + sum(_bytes(text) for text in binary.values())
        if size > _LARGEST:
            yield field_errors.too_long("[]", _LARGEST)

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateConfigMapUpdate``."""
        yield from _immutable_violations(new, old, "data", "binaryData")
        yield from self.validate(new)


class SecretKind(KindBehaviour):
    """Binary data by key; ``stringData`` is a write-only alternative."""

    def default(self, obj: Object) -> None:
        """Type Opaque; encodes ``stringData``."""
        common_rules.fill_missing(obj, type="Opaque")
        if texts := obj.pop("stringData", None):
            data = common_rules.sub_object(obj, "data")
            data.update({key: base64.b64encode(text.encode()).decode() for key, text in texts.items()})
        _tidy(obj, "data")

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateSecret``."""
        data, kind = obj.get("data") or {}, obj["type"]
        for key in data:
            yield from _check_key(key, "data")
        if sum(_bytes(text) for text in data.values()) > _LARGEST:
            yield field_errors.too_long("data", _LARGEST)
        if kind == _TOKEN and not (obj["metadata"].get("annotations") or {}).get("kubernetes.io/service-account.name"):
            yield field_errors.value_required("metadata.annotations[kubernetes.io/service-account.name]")
        for key in _NEEDED.get(kind, ()):
            if key not in data:
                yield field_errors.value_required(f"data[{key}]")
        if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
            yield field_errors.value_required("data[username]")
            yield field_errors.value_required("data[password]")

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateSecretUpdate``."""
        yield from common_rules.check_immutable(new, old, "", "type")
        yield from _immutable_violations(new, old, "data")
        yield from self.validate(new)

    def fields(self, obj: Object) -> Mapping[str, str]:
        """The type."""
        return {"type": obj.get("type") or ""}


class ServiceAccountKind(KindBehaviour):
    """The identity of pods."""

    status_after_delete = False

    def default(self, obj: Object) -> None:
        """Drops empty lists."""
        _tidy(obj, "secrets", "imagePullSecrets")


def _tidy(obj: Object, *names: str) -> None:
    for name in names:
        if not obj.get(name):
            obj.pop(name, None)


def _check_key(key: str, path: str) -> Iterator[Cause]:
    if wrong := config_key_error(key):
        yield field_errors.invalid(f"{path}[{key}]", key, wrong)


def _bytes(text: str) -> int:
    try:
        return len(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return len(text)


def _immutable_violations(new: Object, old: Object, *names: str) -> Iterator[Cause]:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield field_errors.forbidden("immutable", _FROZEN)
    for name in names:
        if (new.get(name) or {}) != (old.get(name) or {}):
            yield field_errors.forbidden(name, _FROZEN)
