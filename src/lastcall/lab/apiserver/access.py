"""Questions about identity and rights, which are posted and not kept: reviews, and tokens of service accounts."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lastcall.lab.apiserver import answers, fields, media, meta, posting, status
from lastcall.lab.apiserver.admission.node_tokens import NodeTokens
from lastcall.lab.apiserver.admission.reviews import user_info
from lastcall.lab.apiserver.authorization.node import is_node
from lastcall.lab.apiserver.authorization.reviewing import reviewed_attributes, reviewed_rules, reviewed_user
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.request import Object, Response
from lastcall.lab.apiserver.schema.bodies import Kind
from lastcall.lab.apiserver.service_tokens import AUDIENCE, Issued
from lastcall.lab.apiserver.status import Cause
from lastcall.lab.apiserver.store import Key

if TYPE_CHECKING:
    from lastcall.lab.apiserver.server import ApiServer

_TOKEN_REQUEST = Kind("authentication.k8s.io", "v1", "TokenRequest")
_HOUR, _SHORTEST, _LONGEST = 3600, 600, 2**32
_BOUND = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


class Access:
    """Answers them."""

    def __init__(self, server: "ApiServer") -> None:
        self._server = server
        self._node_tokens = NodeTokens(server.store, server.authorizer)

    async def token_review(self, context: Context) -> Response:
        """Whose token is this?"""
        review = await self._server.read(context)
        attributes = await posting.mutate(self._server, context, review)
        token = (review.get("spec") or {}).get("token", "")
        if not token:
            raise status.bad_request("token is required for TokenReview in authentication")
        await self._server.admission.validate(attributes)
        audiences = review["spec"].get("audiences") or [AUDIENCE]
        user = self._server.identities.of(token, audiences)
        said: Object = {"user": {}, "error": "invalid bearer token"}
        if user:
            said = {"authenticated": True, "user": user_info(user), "audiences": audiences}
        return self._answer(context, review, said)

    async def self_review(self, context: Context) -> Response:
        """Who am I?"""
        review = await self._server.read(context)
        await self._server.admission.validate(await posting.mutate(self._server, context, review))
        review["metadata"] = {"creationTimestamp": meta.timestamp(self._server.clock.wall())}
        return self._answer(context, review, {"userInfo": user_info(context.user)})

    async def access_review(self, context: Context) -> Response:
        """May somebody, or may I, do this?"""
        review = await self._server.read(context)
        attributes = await posting.mutate(self._server, context, review)
        causes = [*_access_rules(review, context)]
        if causes:
            raise status.invalid("", context.route.resource.group, "", causes)
        await self._server.admission.validate(attributes)
        user = (
            context.user if context.route.resource.kind == "SelfSubjectAccessReview" else reviewed_user(review["spec"])
        )
        decision = self._server.authorizer.authorize(reviewed_attributes(user, review["spec"]))
        said: Object = {"allowed": decision.allowed}
        return self._answer(context, review, said | ({"reason": decision.reason} if decision.reason else {}))

    async def rules_review(self, context: Context) -> Response:
        """What may I do in this namespace?"""
        review = await self._server.read(context)
        attributes = await posting.mutate(self._server, context, review)
        namespace = (review.get("spec") or {}).get("namespace")
        if not namespace:
            raise status.bad_request("no namespace on request")
        await self._server.admission.validate(attributes)
        return self._answer(
            context,
            review | {"metadata": {}, "spec": {}},
            reviewed_rules(self._server.authorizer, context.user, namespace),
        )

    async def token_request(self, context: Context) -> Response:
        """POST of ``serviceaccounts/token``: a new token. ApiError if there is no such account, or no such pod."""
        route = context.route
        request = await self._server.read(context, _TOKEN_REQUEST)
        spec = request.setdefault("spec", {})
        spec["expirationSeconds"] = spec.get("expirationSeconds") or _HOUR
        if is_node(context.user):
            self._node_tokens.check(context.user, route.namespace, route.name, spec)
        attributes = await posting.mutate(self._server, context, request)
        stored = self._server.store.get(Key(route.resource.storage, route.namespace, route.name))
        if stored is None:
            raise status.not_found(route.resource.plural, route.resource.group, route.name)
        spec["audiences"] = spec.get("audiences") or [AUDIENCE]
        wall, uid = self._server.clock.wall(), stored.object()["metadata"]["uid"]
        said = {"name": route.name, "namespace": route.namespace, "uid": uid}
        request["metadata"] |= said | {"creationTimestamp": meta.timestamp(wall)}
        _check_seconds(spec["expirationSeconds"], route.name)
        await self._server.admission.validate(attributes)
        bound = self._bound(spec.setdefault("boundObjectRef", None), route.namespace)
        issued = Issued(route.namespace, route.name, uid, spec["audiences"], spec["expirationSeconds"], bound)
        token = self._server.identities.service_tokens.sign(issued, wall)
        expires = meta.timestamp(wall + spec["expirationSeconds"])
        return self._answer(context, request, {"token": token, "expirationTimestamp": expires})

    def _bound(self, reference: Object | None, namespace: str) -> Object | None:
        """The object that the token is bound to, with its UID."""
        if not reference:
            return None
        kind, name = reference.get("kind", ""), reference.get("name", "")
        plural = _BOUND.get(kind)
        if plural is None:
            raise status.bad_request(
                f"cannot bind token to object of type /{reference.get('apiVersion', '')}, Kind={kind}"
            )
        stored = self._server.store.get(Key(plural, "" if plural == "nodes" else namespace, name))
        if stored is None:
            raise status.not_found(plural, "", name)
        uid = stored.object()["metadata"]["uid"]
        if reference.get("uid", uid) != uid:
            why = f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record."
            raise status.conflict(plural, "", name, f"{why} The object might have been deleted and then recreated")
        return {**reference, "uid": uid}

    def _answer(self, context: Context, review: Object, said: Object) -> Response:
        form = media.negotiated(context.request)
        return answers.one(context, {**review, "status": said}, form, self._server, code=201)


def _check_seconds(seconds: int, name: str) -> None:
    """ApiError if a token cannot live that long (``pkg/apis/authentication/validation``)."""
    path = "spec.expirationSeconds"
    causes = []
    if seconds < _SHORTEST:
        causes.append(fields.invalid(path, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > _LONGEST:
        causes.append(fields.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds"))
    if causes:
        raise status.invalid("TokenRequest", "authentication.k8s.io", name, causes)


def _access_rules(review: Object, context: Context) -> Iterator[Cause]:
    """``pkg/apis/authorization/validation``."""
    spec, kind = review.get("spec") or {}, context.route.resource.kind
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        yield fields.invalid(
            "spec.nonResourceAttributes", path, "cannot be specified in combination with resourceAttributes"
        )
    if resource is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield fields.invalid("spec.resourceAttributes", None, why)
    if kind != "SelfSubjectAccessReview" and not spec.get("user") and not spec.get("groups"):
        yield fields.invalid("spec.user", "", "at least one of user or group must be specified")
    for name in ("fieldSelector", "labelSelector"):
        yield from _selector_rules((resource or {}).get(name), f"spec.resourceAttributes.{name}")
    if kind == "LocalSubjectAccessReview":
        if resource is not None and resource.get("namespace", "") != context.route.namespace:
            why = "must match metadata.namespace"
            yield fields.invalid("spec.resourceAttributes.namespace", resource.get("namespace", ""), why)
        if path is not None:
            yield fields.invalid("spec.nonResourceAttributes", path, "disallowed on this kind of request")


def _selector_rules(selector: Object | None, path: str) -> Iterator[Cause]:
    if selector is None:
        return
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    if raw and requirements:
        yield fields.invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements")
    if not raw and not requirements:
        yield fields.required(
            f"{path}.requirements", f"when {path} is specified, requirements or rawSelector is required"
        )
