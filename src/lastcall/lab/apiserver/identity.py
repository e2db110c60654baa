"""Who asks: bearer tokens, what the front knows of the client, and whom a request speaks for.

RBAC is not evaluated: whoever is known may do everything. Nobody in particular may only ask whether the server is well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from lastcall.lab.apiserver import status
from lastcall.lab.apiserver.request import Identity, Request
from lastcall.lab.apiserver.routes import place, verb
from lastcall.lab.apiserver.service_tokens import AUDIENCE, ServiceTokens
from lastcall.lab.apiserver.store import Store
from lastcall.ports import Clock

ANONYMOUS = Identity("system:anonymous", ("system:unauthenticated",))
"""Who shows nothing."""

_AUTHENTICATED = "system:authenticated"
_PUBLIC = ("/healthz", "/livez", "/readyz", "/version")
"""What the role ``system:public-info-viewer`` lets everybody read."""

_EXTRA = "impersonate-extra-"


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
        """The request with who asks. ApiError (401, 403) if nobody knows that token, or nobody in particular asks.

        A token goes before what ``request.user`` says: the one whom the front, or a caller within the process, names.
        """
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        user: Identity | None = request.user
        if scheme.lower() == "bearer":
            user = self.of(token.strip())
        if user is None:
            raise status.unauthorized()
        user = impersonation(request.headers) or user
        if user is not request.user:
            request = replace(request, user=user)
        if request.user.name == ANONYMOUS.name:
            _check_public(request)
        return request


def impersonation(headers: Mapping[str, str]) -> Identity | None:
    """Whom the Impersonate headers name (``kubectl --as``). ApiError if they name groups of nobody."""
    if not any(header.startswith("impersonate-") for header in headers):
        return None
    name = headers.get("impersonate-user", "")
    groups = [one.strip() for one in headers.get("impersonate-group", "").split(",") if one.strip()]
    extra = {header.removeprefix(_EXTRA): [value] for header, value in headers.items() if header.startswith(_EXTRA)}
    uid = headers.get("impersonate-uid", "")
    if not name:
        if groups or extra or uid:
            raise status.internal("requested groups, a uid or extra without impersonating a user")
        return None
    if not groups and name.startswith("system:serviceaccount:"):
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{name.split(':')[2]}"]
    if name == ANONYMOUS.name:
        groups = groups or [*ANONYMOUS.groups]
    elif not {_AUTHENTICATED, *ANONYMOUS.groups} & {*groups}:
        groups.append(_AUTHENTICATED)
    return Identity(name, tuple(groups), uid, extra)


def _check_public(request: Request) -> None:
    """ApiError in the words of ``k8s.io/apiserver/pkg/endpoints/handlers/responsewriters`` unless all may ask that."""
    if request.method == "GET" and any(request.path == one or request.path.startswith(f"{one}/") for one in _PUBLIC):
        return
    where, user = place(request.path), request.user.name
    if where is None:
        message = f'forbidden: User "{user}" cannot {request.method.lower()} path "{request.path}"'
        raise status.ApiError(403, "Forbidden", message, {})
    what = f"{where.plural}/{where.subresource}" if where.subresource else where.plural
    scope = f'in the namespace "{where.namespace}"' if where.namespace else "at the cluster scope"
    asked = verb(request, where) or request.method.lower()
    why = f'User "{user}" cannot {asked} resource "{what}" in API group "{where.group}" {scope}'
    raise status.forbidden(where.plural, where.group, where.name, why)
