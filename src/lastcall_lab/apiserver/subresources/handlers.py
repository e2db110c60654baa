"""The handlers of subresources that are no part of their object, and of resources that are only posted."""

from collections.abc import Awaitable, Callable, Mapping

from lastcall_lab.apiserver.authentication.authenticator import Authenticator
from lastcall_lab.apiserver.authorization.authorizer import Authorizer
from lastcall_lab.apiserver.registry.registry import Registry
from lastcall_lab.apiserver.responses.response_builder import ResponseBuilder
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.subresources.auth_reviews import AuthReviews
from lastcall_lab.apiserver.subresources.pod_binding import PodBinding
from lastcall_lab.apiserver.subresources.pod_eviction import PodEvictions
from lastcall_lab.apiserver.subresources.pod_streams import PodStreams
from lastcall_lab.apiserver.subresources.scale import ScaleSubresource
from lastcall_lab.apiserver.values.request import Response

Handler = Callable[[RequestContext], Awaitable[Response]]


def subresource_handlers(
    registry: Registry,
    responses: ResponseBuilder,
    streams: PodStreams,
    *,
    authenticator: Authenticator,
    authorizer: Authorizer,
) -> Mapping[tuple[str, str], Handler]:
    """The handlers by qualified resource and subresource.

    The subresource is empty for resources that are posted and never stored. Without a resource, the handler serves this
    subresource of every resource.
    """
    evictions = PodEvictions(registry, responses)
    binding = PodBinding(registry, responses)
    access = AuthReviews(registry, responses, authenticator=authenticator, authorizer=authorizer)
    return {
        ("selfsubjectreviews.authentication.k8s.io", ""): access.review_self,
        ("tokenreviews.authentication.k8s.io", ""): access.review_token,
        ("localsubjectaccessreviews.authorization.k8s.io", ""): access.review_access,
        ("selfsubjectaccessreviews.authorization.k8s.io", ""): access.review_access,
        ("selfsubjectrulesreviews.authorization.k8s.io", ""): access.review_rules,
        ("subjectaccessreviews.authorization.k8s.io", ""): access.review_access,
        ("serviceaccounts", "token"): access.issue_token,
        ("bindings", ""): binding.create,
        ("", "scale"): ScaleSubresource(registry, responses).serve,
        ("pods", "binding"): binding.create,
        ("pods", "eviction"): evictions.create,
        ("pods", "log"): streams.log,
        ("pods", "exec"): streams.require_upgrade,
        ("pods", "attach"): streams.require_upgrade,
        ("pods", "portforward"): streams.refuse_port_forward,
    }
