"""ConfigMaps, Secrets, ServiceAccounts and ComponentStatuses (``pkg/apis/core``)."""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping

from lastcall.lab.apiserver import fields
from lastcall.lab.apiserver.kinds import rules
from lastcall.lab.apiserver.kinds.base import Behaviour
from lastcall.lab.apiserver.kinds.pod_values import config_key
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.status import Cause

_LARGEST = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105  (a type of secret)


class ComponentStatus(Behaviour):
    """Of the parts of the control plane, of which there is one."""

    deprecation = "v1 ComponentStatus is deprecated in v1.19+"


class ConfigMap(Behaviour):
    """Text and bytes by name."""

    def default(self, obj: Object) -> None:
        """Empty maps are as good as none."""
        _tidy(obj, "data", "binaryData")

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateConfigMap``."""
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        for key in data:
            yield from _check_key(key, "data")
            if key in binary:
                why = "duplicate of key present in binaryData"
                yield fields.invalid(f"data[{key}]", key, why)
        for key in binary:
            yield from _check_key(key, "binaryData")
        size = sum(len(text.encode()) for text in data.values()) + sum(_bytes(text) for text in binary.values())
        if size > _LARGEST:
            yield fields.too_long("[]", _LARGEST)

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateConfigMapUpdate``."""
        yield from _frozen(new, old, "data", "binaryData")
        yield from self.validate(new)


class Secret(Behaviour):
    """Bytes by name; ``stringData`` is another way to write them."""

    def default(self, obj: Object) -> None:
        """Opaque; what is given as text is encoded."""
        rules.fill(obj, type="Opaque")
        if texts := obj.pop("stringData", None):
            data = rules.part(obj, "data")
            data.update({key: base64.b64encode(text.encode()).decode() for key, text in texts.items()})
        _tidy(obj, "data")

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateSecret``."""
        data, kind = obj.get("data") or {}, obj["type"]
        for key in data:
            yield from _check_key(key, "data")
        if sum(_bytes(text) for text in data.values()) > _LARGEST:
            yield fields.too_long("data", _LARGEST)
        if kind == _TOKEN and not (obj["metadata"].get("annotations") or {}).get("kubernetes.io/service-account.name"):
            yield fields.required("metadata.annotations[kubernetes.io/service-account.name]")
        for key in _NEEDED.get(kind, ()):
            if key not in data:
                yield fields.required(f"data[{key}]")
        if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
            yield fields.required("data[username]")
            yield fields.required("data[password]")

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """``ValidateSecretUpdate``."""
        yield from rules.immutable(new, old, "", "type")
        yield from _frozen(new, old, "data")
        yield from self.validate(new)

    def fields(self, obj: Object) -> Mapping[str, str]:
        """Its type."""
        return {"type": obj.get("type") or ""}


class ServiceAccount(Behaviour):
    """Whom pods act as."""

    status_after_delete = False

    def default(self, obj: Object) -> None:
        """Empty lists are as good as none."""
        _tidy(obj, "secrets", "imagePullSecrets")


def _tidy(obj: Object, *names: str) -> None:
    for name in names:
        if not obj.get(name):
            obj.pop(name, None)


def _check_key(key: str, path: str) -> Iterator[Cause]:
    if wrong := config_key(key):
        yield fields.invalid(f"{path}[{key}]", key, wrong)


def _bytes(text: str) -> int:
    try:
        return len(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return len(text)


def _frozen(new: Object, old: Object, *names: str) -> Iterator[Cause]:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield fields.forbidden("immutable", _FROZEN)
    for name in names:
        if (new.get(name) or {}) != (old.get(name) or {}):
            yield fields.forbidden(name, _FROZEN)
