"""Authentication, impersonation and authorization of a request, in the order of kube-apiserver's handler chain."""

from dataclasses import replace

from lastcall_lab.apiserver.authentication.authenticator import Authenticator
from lastcall_lab.apiserver.authorization.attributes import (
    MASTERS,
    AccessAttributes,
    access_attributes,
    forbidden_error,
)
from lastcall_lab.apiserver.authorization.authorizer import Authorizer
from lastcall_lab.apiserver.authorization.impersonation import impersonate, requested_user
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.values.request import Request


class RequestAccess:
    """Finds the user of a request and checks what the user may do."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer

    def identify(self, request: Request) -> Request:
        """Authenticates the request and applies impersonation. ApiError (401, 403) if one of them fails."""
        request = self._authenticator.authenticate(request)
        wanted = requested_user(request.headers)
        if wanted is None:
            return request
        user = impersonate(access_attributes(request), wanted, self._authorizer.authorize)
        return replace(request, user=user)

    def authorize(self, request: Request) -> None:
        """ApiError (403) if the user may not make the request."""
        if MASTERS not in request.user.groups:
            self._require(access_attributes(request))

    def authorize_creation(self, context: RequestContext) -> None:
        """ApiError (403) unless the user may create the object that a PUT or an apply would make (``withAuthorization``)."""
        self._require(access_attributes(context.request)._replace(verb="create"))

    def permit(self, request: Request) -> Request:
        """Authenticates and authorizes the request. ApiError (400, 401, 403) on failure."""
        request = self.identify(request)
        self.authorize(request)
        return request

    def _require(self, asked: AccessAttributes) -> None:
        decision = self._authorizer.authorize(asked)
        if not decision.allowed:
            raise forbidden_error(asked, decision.reason)
