"""Who asks: bearer tokens, and what the front knows of the client."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from lastcall.ports.node import Clock
from lastcall_lab.apiserver.authentication.service_tokens import AUDIENCE, ServiceTokens
from lastcall_lab.apiserver.storage.store import Store
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Request, UserInfo

ANONYMOUS = UserInfo("system:anonymous", ("system:unauthenticated",))
"""Who shows nothing."""

_AUTHENTICATED = "system:authenticated"


class Authenticator:
    """Knows tokens; ``add`` makes one known, ``service_tokens`` knows those of service accounts."""

    def __init__(self, store: Store, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._table: dict[str, UserInfo] = {}
        self.service_tokens = ServiceTokens(store, random)

    def add(self, token: str, name: str, groups: Sequence[str] = (_AUTHENTICATED,), *, uid: str = "") -> None:
        """From now on ``token`` means this user, until it is added again."""
        self._table[token] = UserInfo(name, tuple(groups), uid)

    def of(self, token: str, audiences: Sequence[str] = (AUDIENCE,)) -> UserInfo | None:
        """Whose token it is."""
        return self._table.get(token) or self.service_tokens.verify_token(token, self._clock.wall(), audiences)

    def authenticate(self, request: Request) -> Request:
        """The request with who asks. ApiError (401) if the token is not known.

        A token goes before what ``request.user`` says: the one whom the front, or a caller within the process, names.
        """
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return request
        user = self.of(token.strip())
        if user is None:
            raise api_errors.unauthorized_error()
        return replace(request, user=user)
