"""A short token of the ServiceAccount that may read the agents' metrics: nodes never see the token of a person."""

import asyncio

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.credentials import Credential
from lastcall.adapters.kube.resources import dict_resource
from lastcall.errors import LastcallError, Unavailable
from lastcall.names import METRICS_READER, SYSTEM_NAMESPACE
from lastcall.ports.node import Clock

LASTS_SECONDS = 600
"""The shortest life of a token that an API server grants."""
PAUSE_SECONDS = 10.0
"""Seconds between two requests that fail, such as without the right."""

_ACCOUNTS = dict_resource("", "v1", "serviceaccounts")


class ReaderToken:
    """``CredentialSource``: asks for a token (``serviceaccounts/token``, create) when there is none or it gets old."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._held = Credential()
        self._until = 0.0
        self._failure, self._failed = "", 0.0
        self._asking = asyncio.Lock()

    async def current_credential(self) -> Credential:
        """A token that is valid for five minutes at least; many who ask at once share one request.

        Errors are those of the API client. After one, nobody asks again for ``PAUSE_SECONDS``.
        """
        async with self._asking:
            if self._clock.boottime() < self._until:
                return self._held
            if self._failure and self._clock.boottime() < self._failed + PAUSE_SECONDS:
                raise Unavailable(self._failure)
            asked = self._clock.boottime()
            try:
                self._held = Credential(token=await self._request_token())
            except LastcallError as error:
                self._failure, self._failed = str(error), asked
                raise
            self._failure, self._until = "", asked + LASTS_SECONDS / 2
            return self._held

    def mark_refused(self, credential: Credential) -> bool:
        """Asks for another one next time, once for each token."""
        if credential is self._held:
            self._until = 0.0
        return True

    async def _request_token(self) -> str:
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": LASTS_SECONDS},
        }
        answer = await self._client.create_subresource(
            _ACCOUNTS, METRICS_READER, "token", body, namespace=SYSTEM_NAMESPACE
        )
        token = str((answer.get("status") or {}).get("token", ""))
        if not token:
            raise Unavailable(f"the API server gave no token of {SYSTEM_NAMESPACE}/{METRICS_READER}")
        return token
