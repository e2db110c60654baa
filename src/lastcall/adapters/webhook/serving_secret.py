"""The Secret that all replicas of the guard serve with: made by the first of them, renewed by any, used by all."""

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from random import Random
from typing import Final

import msgspec

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import SECRETS, Object
from lastcall.adapters.webhook import certificates
from lastcall.adapters.webhook.certificates import KeyPair
from lastcall.errors import AlreadyExists, Conflict, NotFound
from lastcall.model.base import Facts
from lastcall.ports.node import Clock

NAME: Final = "lastcall-guard-tls"

_FIELDS: Final = {
    "ca.crt": "authorities",
    "ca.key": "authority_key",
    "tls.crt": "certificate",
    "tls.key": "key",
    "path-token": "path_token",
}


class ServingMaterial(Facts, frozen=True):
    """What is served with. ``authorities`` may also hold the one before, in PEM, the newest first."""

    authorities: str
    certificate: str
    key: str
    authority_key: str = ""
    path_token: str = ""
    """A secret part of the webhook's path: only who may read the webhook configuration or this Secret knows it."""


class ServingSecret:
    """Needs get, create and update on the one Secret."""

    def __init__(self, client: Client, namespace: str, names: Sequence[str], *, clock: Clock, random: Random) -> None:
        self._client = client
        self._namespace = namespace
        self._names = tuple(names)
        self._clock = clock
        self._random = random

    async def read_or_make(self) -> ServingMaterial:
        """What is served with now, after it was made or renewed if it had to be. Errors are those of the API client."""
        while True:
            try:
                return await self._try()
            except (AlreadyExists, Conflict):
                continue  # another replica was first

    async def _try(self) -> ServingMaterial:
        now = datetime.fromtimestamp(self._clock.wall(), UTC)
        try:
            stored = await self._client.get(SECRETS, NAME, namespace=self._namespace)
        except NotFound:
            made = self._make_all(now)
            await self._client.create(SECRETS, self._secret_object(made, None), namespace=self._namespace)
            return made
        found = _read(stored)
        if found and not found.path_token:
            return await self._add_token(found, stored)
        if found and not self._is_due(found, now):
            return found
        renewed = _renew(found, self._names, now) if found else self._make_all(now)
        await self._client.update(SECRETS, NAME, self._secret_object(renewed, stored), namespace=self._namespace)
        return renewed

    def _make_all(self, now: datetime) -> ServingMaterial:
        """``random`` must be the system's: the token is a secret."""
        return _material(certificates.make_authority(now), "", self._make_token(), self._names, now)

    def _make_token(self) -> str:
        return f"{self._random.getrandbits(192):048x}"

    async def _add_token(self, found: ServingMaterial, stored: Object) -> ServingMaterial:
        """A Secret that somebody else keeps gets the token alone: its other keys and its type stay as they are."""
        token = self._make_token()
        data = dict(stored["data"]) | {"path-token": base64.b64encode(token.encode()).decode()}
        await self._client.update(SECRETS, NAME, stored | {"data": data}, namespace=self._namespace)
        return msgspec.structs.replace(found, path_token=token)

    def _is_due(self, found: ServingMaterial, now: datetime) -> bool:
        """The certificate that somebody else keeps, such as cert-manager, is left alone: it has no authority's key."""
        if not found.authority_key:
            return False
        is_old = now >= certificates.renewal_time(found.certificate)
        return is_old or not certificates.names_of(found.certificate) >= set(self._names)

    def _secret_object(self, material: ServingMaterial, stored: Object | None) -> Object:
        values = msgspec.structs.asdict(material)
        data = {key: base64.b64encode(values[name].encode()).decode() for key, name in _FIELDS.items()}
        metadata = stored["metadata"] if stored else {"name": NAME, "namespace": self._namespace}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}


def _read(stored: Object) -> ServingMaterial | None:
    """None without a certificate and its key. No authority is needed if the API server trusts the certificate's."""
    data = stored.get("data") or {}
    found = {name: base64.b64decode(data.get(key, "")).decode() for key, name in _FIELDS.items()}
    return ServingMaterial(**found) if found["certificate"] and found["key"] else None


def _renew(found: ServingMaterial, names: Sequence[str], now: datetime) -> ServingMaterial:
    """Another serving certificate; an authority that grows old is replaced too, and trusted a while longer."""
    newest = found.authorities.partition("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n"
    if now < certificates.renewal_time(newest):
        authority = KeyPair(certificate=newest, key=found.authority_key)
        return _material(authority, found.authorities.removeprefix(newest), found.path_token, names, now)
    return _material(certificates.make_authority(now), newest, found.path_token, names, now)


def _material(authority: KeyPair, older: str, token: str, names: Sequence[str], now: datetime) -> ServingMaterial:
    serving = certificates.make_serving_certificate(authority, names, now)
    return ServingMaterial(
        authorities=authority.certificate + older,
        authority_key=authority.key,
        certificate=serving.certificate,
        key=serving.key,
        path_token=token,
    )
