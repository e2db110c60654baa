"""Service account tokens: JWTs with the claims of Kubernetes, signed with a secret of the server (HS256)."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from lastcall_lab.apiserver.storage.store import StorageKey, Store
from lastcall_lab.apiserver.values import object_meta
from lastcall_lab.apiserver.values.request import Object, UserInfo

AUDIENCE = "https://kubernetes.default.svc.cluster.local"
"""The audience of the API server itself, and the issuer's name."""

_HEADER = {"alg": "HS256", "typ": "JWT"}
_BOUND = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


@dataclass(frozen=True)
class IssuedToken:
    """A requested token; ``bound`` is the object whose deletion invalidates it."""

    namespace: str
    name: str
    uid: str
    audiences: Sequence[str]
    seconds: int
    bound: Mapping[str, str] | None = None


class ServiceTokens:
    """Signs and verifies tokens; ``random`` makes their ids, and the secret unless one is set."""

    def __init__(self, store: Store, random: Random) -> None:
        self._store = store
        self._random = random
        self.secret = random.randbytes(32)
        """The signing key; if persisted, tokens stay valid across restarts of this process."""

    def sign_token(self, issued: IssuedToken, wall: float) -> str:
        """The token, valid from ``wall`` (seconds since 1970)."""
        account: Object = {
            "namespace": issued.namespace,
            "serviceaccount": {"name": issued.name, "uid": issued.uid},
        }
        if issued.bound:
            account[issued.bound["kind"].lower()] = {"name": issued.bound["name"], "uid": issued.bound["uid"]}
            account |= self._node_of(issued)
        claims = {
            "aud": list(issued.audiences),
            "exp": int(wall) + issued.seconds,
            "iat": int(wall),
            "iss": AUDIENCE,
            "jti": object_meta.new_uid(self._random),
            "kubernetes.io": account,
            "nbf": int(wall),
            "sub": f"system:serviceaccount:{issued.namespace}:{issued.name}",
        }
        signed = f"{_pack_segment(_HEADER)}.{_pack_segment(claims)}"
        return f"{signed}.{self._signature(signed)}"

    def verify_token(self, token: str, wall: float, audiences: Sequence[str] = (AUDIENCE,)) -> UserInfo | None:
        """The user of a token; None if it is not signed here, expired, for another audience, or its account is gone."""
        signed, _, signature = token.rpartition(".")
        if not signed or not hmac.compare_digest(signature.encode(), self._signature(signed).encode()):
            return None
        claims = _unpack_segment(signed.partition(".")[2])
        if not claims["nbf"] <= wall < claims["exp"] or not set(claims["aud"]) & set(audiences):
            return None
        account = claims["kubernetes.io"]
        namespace, name = account["namespace"], account["serviceaccount"]["name"]
        if not self._there("serviceaccounts", namespace, account["serviceaccount"]) or not self._bound_there(account):
            return None
        return UserInfo(
            f"system:serviceaccount:{namespace}:{name}",
            ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"),
            account["serviceaccount"]["uid"],
            _extra(claims["jti"], account),
        )

    def _node_of(self, issued: IssuedToken) -> Object:
        """The node of the token's pod, if it is bound to one that has a node."""
        assert issued.bound
        pod = self._store.get(StorageKey("pods", issued.namespace, issued.bound["name"]))
        if issued.bound["kind"] != "Pod" or pod is None:
            return {}
        name = pod.fields.get("spec.nodeName", "")
        node = self._store.get(StorageKey("nodes", "", name)) if name else None
        return {"node": {"name": name, "uid": node.to_object()["metadata"]["uid"]}} if node else {}

    def _bound_there(self, account: Object) -> bool:
        bound = [(plural, account[kind.lower()]) for kind, plural in _BOUND.items() if kind.lower() in account]
        if "pod" in account:  # the token names the pod's node, which may be gone
            bound = [one for one in bound if one[0] != "nodes"]
        return all(self._there(plural, "" if plural == "nodes" else account["namespace"], one) for plural, one in bound)

    def _there(self, plural: str, namespace: str, wanted: Object) -> bool:
        stored = self._store.get(StorageKey(plural, namespace, wanted["name"]))
        return stored is not None and stored.to_object()["metadata"]["uid"] == wanted["uid"]

    def _signature(self, signed: str) -> str:
        return _text(hmac.new(self.secret, signed.encode(), hashlib.sha256).digest())


def _extra(identifier: str, account: Object) -> Mapping[str, Sequence[str]]:
    extra = {"authentication.kubernetes.io/credential-id": [f"JTI={identifier}"]}
    for kind in ("pod", "node"):
        if kind in account:
            extra[f"authentication.kubernetes.io/{kind}-name"] = [account[kind]["name"]]
            extra[f"authentication.kubernetes.io/{kind}-uid"] = [account[kind]["uid"]]
    return extra


def _pack_segment(value: Any) -> str:
    return _text(json.dumps(value, separators=(",", ":")).encode())


def _unpack_segment(text: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
