"""Authentication by bearer tokens, and by the user that the HTTP front end determined."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from lastcall.ports.node import Clock
from lastcall_lab.apiserver.authentication.service_tokens import AUDIENCE, ServiceTokens
from lastcall_lab.apiserver.storage.store import Store
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Request, UserInfo

ANONYMOUS = UserInfo("system:anonymous", ("system:unauthenticated",))
"""The user of requests without credentials."""

_AUTHENTICATED = "system:authenticated"


class Authenticator:
    """Verifies tokens: static ones, which ``add`` registers, and those of ``service_tokens``."""

    def __init__(self, store: Store, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._table: dict[str, UserInfo] = {}
        self.service_tokens = ServiceTokens(store, random)

    def add(self, token: str, name: str, groups: Sequence[str] = (_AUTHENTICATED,), *, uid: str = "") -> None:
        """Registers ``token`` for this user, replacing an earlier registration."""
        self._table[token] = UserInfo(name, tuple(groups), uid)

    def of(self, token: str, audiences: Sequence[str] = (AUDIENCE,)) -> UserInfo | None:
        """The user of a token."""
        return self._table.get(token) or self.service_tokens.verify_token(token, self._clock.wall(), audiences)

    def authenticate(self, request: Request) -> Request:
        """The request with its user. ApiError (401) if the token is unknown.

        A token takes precedence over ``request.user``, which the front end or an in-process caller sets.
        """
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return request
        user = self.of(token.strip())
        if user is None:
            raise api_errors.unauthorized_error()
        return replace(request, user=user)
