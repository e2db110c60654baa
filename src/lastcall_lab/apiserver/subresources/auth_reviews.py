"""Access and token reviews, and tokens of service accounts; none of them is stored."""

from collections.abc import Iterator

from lastcall_lab.apiserver.admission.admission_reviews import user_info
from lastcall_lab.apiserver.admission.node_tokens import NodeTokenRestriction
from lastcall_lab.apiserver.authentication.authenticator import Authenticator
from lastcall_lab.apiserver.authentication.service_tokens import AUDIENCE, IssuedToken
from lastcall_lab.apiserver.authorization.access_reviews import (
    attributes_under_review,
    rules_review_status,
    user_under_review,
)
from lastcall_lab.apiserver.authorization.authorizer import Authorizer
from lastcall_lab.apiserver.authorization.node_authorizer import is_node
from lastcall_lab.apiserver.encoding import media_types
from lastcall_lab.apiserver.encoding.request_bodies import GroupVersionKind
from lastcall_lab.apiserver.registry import unstored_objects
from lastcall_lab.apiserver.registry.registry import Registry
from lastcall_lab.apiserver.responses.response_builder import ResponseBuilder
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.storage.store import StorageKey
from lastcall_lab.apiserver.values import api_errors, field_errors, object_meta
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object, Response

_TOKEN_REQUEST = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")
_HOUR, _SHORTEST, _LONGEST = 3600, 600, 2**32
_BOUND = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


class AuthReviews:
    """Answers the reviews."""

    def __init__(
        self, registry: Registry, responses: ResponseBuilder, *, authenticator: Authenticator, authorizer: Authorizer
    ) -> None:
        self._registry = registry
        self._responses = responses
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._node_tokens = NodeTokenRestriction(registry.store, authorizer)

    async def review_token(self, context: RequestContext) -> Response:
        """TokenReview: the user of a token."""
        review = await self._registry.read_body(context)
        attributes = await unstored_objects.admit_unstored(self._registry, context, review)
        token = (review.get("spec") or {}).get("token", "")
        if not token:
            raise api_errors.bad_request_error("token is required for TokenReview in authentication")
        await self._registry.admission.validate(attributes)
        audiences = review["spec"].get("audiences") or [AUDIENCE]
        user = self._authenticator.of(token, audiences)
        said: Object = {"user": {}, "error": "invalid bearer token"}
        if user:
            said = {"authenticated": True, "user": user_info(user), "audiences": audiences}
        return self._answer(context, review, said)

    async def review_self(self, context: RequestContext) -> Response:
        """SelfSubjectReview: the user of the request."""
        review = await self._registry.read_body(context)
        await self._registry.admission.validate(await unstored_objects.admit_unstored(self._registry, context, review))
        review["metadata"] = {"creationTimestamp": object_meta.timestamp(self._registry.clock.wall())}
        return self._answer(context, review, {"userInfo": user_info(context.user)})

    async def review_access(self, context: RequestContext) -> Response:
        """SubjectAccessReview and its self and local forms: whether a user may make an access."""
        review = await self._registry.read_body(context)
        attributes = await unstored_objects.admit_unstored(self._registry, context, review)
        causes = [*_access_review_violations(review, context)]
        if causes:
            raise api_errors.invalid_error("", context.route.resource.group, "", causes)
        await self._registry.admission.validate(attributes)
        user = (
            context.user
            if context.route.resource.kind == "SelfSubjectAccessReview"
            else user_under_review(review["spec"])
        )
        decision = self._authorizer.authorize(attributes_under_review(user, review["spec"]))
        said: Object = {"allowed": decision.allowed}
        return self._answer(context, review, said | ({"reason": decision.reason} if decision.reason else {}))

    async def review_rules(self, context: RequestContext) -> Response:
        """SelfSubjectRulesReview: the user's rules in a namespace."""
        review = await self._registry.read_body(context)
        attributes = await unstored_objects.admit_unstored(self._registry, context, review)
        namespace = (review.get("spec") or {}).get("namespace")
        if not namespace:
            raise api_errors.bad_request_error("no namespace on request")
        await self._registry.admission.validate(attributes)
        return self._answer(
            context,
            review | {"metadata": {}, "spec": {}},
            rules_review_status(self._authorizer, context.user, namespace),
        )

    async def issue_token(self, context: RequestContext) -> Response:
        """POST of ``serviceaccounts/token``: a new token.

        ApiError if the account or the bound object does not exist.
        """
        route = context.route
        request = await self._registry.read_body(context, _TOKEN_REQUEST)
        spec = request.setdefault("spec", {})
        spec["expirationSeconds"] = spec.get("expirationSeconds") or _HOUR
        if is_node(context.user):
            self._node_tokens.check(context.user, route.namespace, route.name, spec)
        attributes = await unstored_objects.admit_unstored(self._registry, context, request)
        stored = self._registry.store.get(StorageKey(route.resource.storage, route.namespace, route.name))
        if stored is None:
            raise api_errors.not_found_error(route.resource.plural, route.resource.group, route.name)
        spec["audiences"] = spec.get("audiences") or [AUDIENCE]
        wall, uid = self._registry.clock.wall(), stored.to_object()["metadata"]["uid"]
        said = {"name": route.name, "namespace": route.namespace, "uid": uid}
        request["metadata"] |= said | {"creationTimestamp": object_meta.timestamp(wall)}
        _check_seconds(spec["expirationSeconds"], route.name)
        await self._registry.admission.validate(attributes)
        bound = self._read_bound_object(spec.setdefault("boundObjectRef", None), route.namespace)
        issued = IssuedToken(route.namespace, route.name, uid, spec["audiences"], spec["expirationSeconds"], bound)
        token = self._authenticator.service_tokens.sign_token(issued, wall)
        expires = object_meta.timestamp(wall + spec["expirationSeconds"])
        return self._answer(context, request, {"token": token, "expirationTimestamp": expires})

    def _read_bound_object(self, reference: Object | None, namespace: str) -> Object | None:
        """The object to which the token is bound, with its UID."""
        if not reference:
            return None
        kind, name = reference.get("kind", ""), reference.get("name", "")
        plural = _BOUND.get(kind)
        if plural is None:
            raise api_errors.bad_request_error(
                f"cannot bind token to object of type /{reference.get('apiVersion', '')}, Kind={kind}"
            )
        stored = self._registry.store.get(StorageKey(plural, "" if plural == "nodes" else namespace, name))
        if stored is None:
            raise api_errors.not_found_error(plural, "", name)
        uid = stored.to_object()["metadata"]["uid"]
        if reference.get("uid", uid) != uid:
            why = f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record."
            raise api_errors.conflict_error(
                plural, "", name, f"{why} The object might have been deleted and then recreated"
            )
        return {**reference, "uid": uid}

    def _answer(self, context: RequestContext, review: Object, said: Object) -> Response:
        form = media_types.negotiate_format(context.request)
        return self._responses.object_response(context, {**review, "status": said}, form, code=201)


def _check_seconds(seconds: int, name: str) -> None:
    """ApiError if the lifetime of a token is out of range (``pkg/apis/authentication/validation``)."""
    path = "spec.expirationSeconds"
    causes = []
    if seconds < _SHORTEST:
        causes.append(field_errors.invalid(path, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > _LONGEST:
        causes.append(field_errors.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds"))
    if causes:
        raise api_errors.invalid_error("TokenRequest", "authentication.k8s.io", name, causes)


def _access_review_violations(review: Object, context: RequestContext) -> Iterator[Cause]:
    """``pkg/apis/authorization/validation``."""
    spec, kind = review.get("spec") or {}, context.route.resource.kind
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        yield field_errors.invalid(
            "spec.nonResourceAttributes", path, "cannot be specified in combination with resourceAttributes"
        )
    if resource is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield field_errors.invalid("spec.resourceAttributes", None, why)
    if kind != "SelfSubjectAccessReview" and not spec.get("user") and not spec.get("groups"):
        yield field_errors.invalid("spec.user", "", "at least one of user or group must be specified")
    for name in ("fieldSelector", "labelSelector"):
        yield from _selector_violations((resource or {}).get(name), f"spec.resourceAttributes.{name}")
    if kind == "LocalSubjectAccessReview":
        if resource is not None and resource.get("namespace", "") != context.route.namespace:
            why = "must match metadata.namespace"
            yield field_errors.invalid("spec.resourceAttributes.namespace", resource.get("namespace", ""), why)
        if path is not None:
            yield field_errors.invalid("spec.nonResourceAttributes", path, "disallowed on this kind of request")


def _selector_violations(selector: Object | None, path: str) -> Iterator[Cause]:
    if selector is None:
        return
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    if raw and requirements:
        yield field_errors.invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements")
    if not raw and not requirements:
        yield field_errors.value_required(
            f"{path}.requirements", f"when {path} is specified, requirements or rawSelector is required"
        )
