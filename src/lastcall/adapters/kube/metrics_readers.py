"""Who may read metrics over the network: decided by the API server, as the kubelet and controller-runtime do.

A TokenReview says whose the bearer token is, a SubjectAccessReview whether this user may ``get`` the non-resource URL
``/metrics``. The ClusterRole ``system:auth-delegator`` permits both requests, and so does the kubelet's own identity.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import dict_resource
from lastcall.aio import timeout
from lastcall.errors import Unavailable
from lastcall.ports.node import Clock

PATH, VERB = "/metrics", "get"
ALLOWED_SECONDS, REFUSED_SECONDS = 60.0, 10.0
"""Seconds for which an answer is reused: as long as a scrape's interval, or two; the kubelet's are longer."""

REVIEW_SECONDS = 5.0
_MOST_KNOWN = 64
_MOST_REVIEWS = 4
_TOKEN_REVIEWS = dict_resource("authentication.k8s.io", "v1", "tokenreviews")
_ACCESS_REVIEWS = dict_resource("authorization.k8s.io", "v1", "subjectaccessreviews")


class Verdict(Enum):
    """What the API server says of a reader."""

    ALLOWED = 200
    UNAUTHENTICATED = 401
    FORBIDDEN = 403


class MetricsReaders:
    """Asks the API server about bearer tokens. ``client`` returns None as long as no identity is known."""

    def __init__(self, client: Callable[[], Client | None], clock: Clock) -> None:
        self._find_client = client
        self._clock = clock
        self._known: dict[bytes, tuple[Verdict, float]] = {}
        self._reviews = asyncio.Semaphore(_MOST_REVIEWS)

    async def judge(self, token: str) -> Verdict:
        """What the bearer of this token may. Unavailable, or another LastcallError, if the API server cannot be asked."""
        if not token:
            return Verdict.UNAUTHENTICATED
        key = hashlib.sha256(token.encode()).digest()
        verdict, until = self._known.get(key, (Verdict.UNAUTHENTICATED, 0.0))
        if self._clock.boottime() >= until:
            verdict = await self._review_in_time(token)
            lasts = ALLOWED_SECONDS if verdict is Verdict.ALLOWED else REFUSED_SECONDS
            self._known.pop(key, None)
            self._known[key] = verdict, self._clock.boottime() + lasts
            if len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]
        return verdict

    async def _review_in_time(self, token: str) -> Verdict:
        client = self._find_client()
        if client is None:
            raise Unavailable("no identity for the API server is known")
        try:
            async with timeout(REVIEW_SECONDS), self._reviews:
                return await _review(client, token)
        except TimeoutError as error:
            raise Unavailable(f"the API server has not answered for {REVIEW_SECONDS:g} s") from error


async def _review(client: Client, token: str) -> Verdict:
    answer = await client.create(_TOKEN_REVIEWS, _body("authentication.k8s.io/v1", "TokenReview", {"token": token}))
    status: Mapping[str, Any] = answer.get("status") or {}
    if not status.get("authenticated"):
        return Verdict.UNAUTHENTICATED
    user = status.get("user") or {}
    spec = {
        "user": user.get("username", ""),
        "uid": user.get("uid", ""),
        "groups": user.get("groups") or [],
        "extra": user.get("extra") or {},
        "nonResourceAttributes": {"path": PATH, "verb": VERB},
    }
    answer = await client.create(_ACCESS_REVIEWS, _body("authorization.k8s.io/v1", "SubjectAccessReview", spec))
    allowed = (answer.get("status") or {}).get("allowed") is True
    return Verdict.ALLOWED if allowed else Verdict.FORBIDDEN


def _body(version: str, kind: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"apiVersion": version, "kind": kind, "spec": spec}
