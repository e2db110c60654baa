"""Reads values of Secrets in lastcall's own namespace when they are needed, and does not keep them."""

import base64
import binascii
from collections.abc import Mapping

import msgspec

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import dict_resource
from lastcall.errors import InvalidInput, LastcallError, NotFound, Unavailable
from lastcall.model.base import Facts


class SecretObject(Facts, frozen=True):
    """v1.Secret; the values are base64."""

    data: Mapping[str, str] = msgspec.field(default_factory=dict)


SECRETS = dict_resource("", "v1", "secrets").with_shape(SecretObject)


class SecretReader:
    """Reads Secrets of one namespace. Needs the verb get on those that policies name, and on no others."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def read_value(self, name: str, key: str, *, source: str, field: str) -> str:
        """The text under a key, without trailing line ends, which editors add.

        Raises InvalidInput, with ``source`` and ``field``, if the Secret or the key does not exist, or if the value is
        empty or not text; Unavailable if it cannot be read now. No message contains a value.
        """
        place = f"Secret {self._namespace}/{name}"
        try:
            secret = await self._client.get(SECRETS, name, namespace=self._namespace)
        except NotFound:
            raise InvalidInput(source, [f"{field}: there is no {place}"]) from None
        except LastcallError as error:
            raise Unavailable(f"{source}: {field}: {place} cannot be read: {error}") from error
        if key not in secret.data:
            raise InvalidInput(source, [f'{field}: {place} has no key "{key}"'])
        try:
            text = base64.b64decode(secret.data[key], validate=True).decode().rstrip("\r\n")
        except (binascii.Error, UnicodeDecodeError):
            raise InvalidInput(source, [f'{field}: "{key}" of {place} is no text']) from None
        if not text:
            raise InvalidInput(source, [f'{field}: "{key}" of {place} is empty'])
        return text
