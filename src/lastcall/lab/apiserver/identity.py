"""Who asks: bearer tokens, and what the front knows of the client."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from lastcall.lab.apiserver import status
from lastcall.lab.apiserver.request import Identity, Request
from lastcall.lab.apiserver.service_tokens import AUDIENCE, ServiceTokens
from lastcall.lab.apiserver.store import Store
from lastcall.ports import Clock

ANONYMOUS = Identity("system:anonymous", ("system:unauthenticated",))
"""Who shows nothing."""

_AUTHENTICATED = "system:authenticated"


class Identities:
    """Knows tokens; ``add`` makes one known, ``service_tokens`` knows those of service accounts."""

    def __init__(self, store: Store, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._table: dict[str, Identity] = {}
        self.service_tokens = ServiceTokens(store, random)

    def add(self, token: str, name: str, groups: Sequence[str] = (_AUTHENTICATED,), *, uid: str = "") -> None:
        """From now on ``token`` means this user, until it is added again."""
        self._table[token] = Identity(name, tuple(groups), uid)

    def of(self, token: str, audiences: Sequence[str] = (AUDIENCE,)) -> Identity | None:
        """Whose token it is."""
        return self._table.get(token) or self.service_tokens.identity(token, self._clock.wall(), audiences)

    def authenticated(self, request: Request) -> Request:
        """The request with who asks. ApiError (401) if the token is not known.

        A token goes before what ``request.user`` says: the one whom the front, or a caller within the process, names.
        """
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return request
        user = self.of(token.strip())
        if user is None:
            raise status.unauthorized()
        return replace(request, user=user)
