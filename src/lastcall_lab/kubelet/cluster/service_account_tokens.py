"""Service account tokens for the pods of a node, renewed before they expire (``pkg/kubelet/token``)."""

import logging
from dataclasses import dataclass

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import Object, dict_resource
from lastcall.errors import LastcallError
from lastcall.ports.node import Clock
from lastcall_lab.apiserver.values.object_meta import parse_seconds

SERVICE_ACCOUNTS = dict_resource("", "v1", "serviceaccounts")
LIFETIME = 3600
"""The default lifetime in seconds."""
LONGEST = 24 * 3600.0
"""Seconds after which a token is renewed, whatever its lifetime."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _CachedToken:
    text: str
    ends: float
    due: float


class ServiceAccountTokens:
    """One cached token per pod, audience and lifetime."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[tuple[str, str, int], _CachedToken] = {}

    async def get(self, pod: Object, asked: Object) -> str:
        """The token for a ``serviceAccountToken`` volume source. Renews it after four fifths of its lifetime.

        LastcallError if a renewal fails and the cached token has expired.
        """
        lifetime = asked.get("expirationSeconds") or LIFETIME
        key, now = (pod["metadata"]["uid"], asked.get("audience", ""), lifetime), self._clock.wall()
        known = self._known.get(key)
        if known is None or now >= known.due:
            try:
                known = self._known[key] = await self._request_token(pod, asked.get("audience", ""), lifetime)
            except LastcallError as error:
                if known is None or now >= known.ends:
                    raise
                log.warning("the token of pod %s cannot be renewed: %s", pod["metadata"]["name"], error)
        return known.text

    def forget(self, uid: str) -> None:
        """Drops the tokens of a finished pod."""
        for key in [key for key in self._known if key[0] == uid]:
            del self._known[key]

    async def _request_token(self, pod: Object, audience: str, lifetime: int) -> _CachedToken:
        metadata = pod["metadata"]
        bound = {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]}
        spec = {
            "audiences": [audience] if audience else [],
            "expirationSeconds": lifetime,
            "boundObjectRef": bound,
        }
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        account = pod["spec"].get("serviceAccountName") or "default"
        answer = await self._client.create_subresource(
            SERVICE_ACCOUNTS, account, "token", request, namespace=metadata["namespace"]
        )
        ends = parse_seconds(answer["status"]["expirationTimestamp"])
        granted = answer["spec"].get("expirationSeconds") or lifetime
        return _CachedToken(answer["status"]["token"], ends, min(ends - granted * 0.2, ends - granted + LONGEST))
