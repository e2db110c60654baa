"""The Secret that all replicas of the guard serve with: made by the first of them, renewed by any, used by all."""

import base64
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Final

import msgspec

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import SECRETS, Object
from lastcall.adapters.webhook.serving_material import Renewal, ServingMaterial
from lastcall.errors import AlreadyExists, Conflict, NotFound
from lastcall.ports.node import Clock

NAME: Final = "lastcall-guard-tls"

_FIELDS: Final = {
    "ca.crt": "authorities",
    "ca.key": "authority_key",
    "tls.crt": "certificate",
    "tls.key": "key",
    "path-token": "path_token",
}


Renew = Callable[[ServingMaterial | None, str, Sequence[str], datetime], Awaitable[Renewal]]
"""``renewal_process.renew_in_process``."""


class ServingSecret:
    """Needs get, create and update on the one Secret. ``random`` must be the system's: the token is a secret."""

    def __init__(
        self, client: Client, namespace: str, names: Sequence[str], *, clock: Clock, random: Random, renew: Renew
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._names = tuple(names)
        self._clock = clock
        self._random = random
        self._renew = renew
        self._last: Renewal | None = None
        """What was found or made last; it is not looked into again before it is due."""

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
            made = await self._renew_if_due(None, now)
            await self._client.create(SECRETS, self._secret_object(made, None), namespace=self._namespace)
            return made
        found = _read(stored)
        if found and not found.path_token:
            return await self._add_token(found, stored)
        if found and not found.authority_key:  # somebody else keeps it, such as cert-manager
            return found
        renewed = await self._renew_if_due(found, now)
        if renewed != found:
            await self._client.update(SECRETS, NAME, self._secret_object(renewed, stored), namespace=self._namespace)
        return renewed

    async def _renew_if_due(self, found: ServingMaterial | None, now: datetime) -> ServingMaterial:
        if self._last is None or self._last.material != found or now >= self._last.due_at:
            token = found.path_token if found else self._make_token()
            self._last = await self._renew(found, token, self._names, now)
        return self._last.material

    def _make_token(self) -> str:
        return f"{self._random.getrandbits(192):048x}"

    async def _add_token(self, found: ServingMaterial, stored: Object) -> ServingMaterial:
        """A Secret that somebody else keeps gets the token alone: its other keys and its type stay as they are."""
        token = self._make_token()
        data = dict(stored["data"]) | {"path-token": base64.b64encode(token.encode()).decode()}
        await self._client.update(SECRETS, NAME, stored | {"data": data}, namespace=self._namespace)
        return msgspec.structs.replace(found, path_token=token)

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
