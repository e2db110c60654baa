"""The subresources that are more than a part of their object, and the resources that are only ever posted."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.subresources.auth_reviews import AuthReviews
from lastcall_lab.apiserver.subresources.pod_binding import PodBinding
from lastcall_lab.apiserver.subresources.pod_eviction import PodEvictions
from lastcall_lab.apiserver.subresources.pod_streams import PodStreams
from lastcall_lab.apiserver.subresources.scale import ScaleSubresource
from lastcall_lab.apiserver.values.request import Response

if TYPE_CHECKING:
    from lastcall_lab.apiserver.server.api_server import ApiServer

Handler = Callable[[RequestContext], Awaitable[Response]]


def subresource_handlers(server: "ApiServer") -> Mapping[tuple[str, str], Handler]:
    """Who serves which: by qualified resource and subresource, which is empty for what is posted and never stored.

    Without a resource: of all that have this subresource.
    """
    streams = PodStreams(server)
    evictions = PodEvictions(server)
    binding = PodBinding(server)
    access = AuthReviews(server)
    return {
        ("selfsubjectreviews.authentication.k8s.io", ""): access.review_self,
        ("tokenreviews.authentication.k8s.io", ""): access.review_token,
        ("localsubjectaccessreviews.authorization.k8s.io", ""): access.review_access,
        ("selfsubjectaccessreviews.authorization.k8s.io", ""): access.review_access,
        ("selfsubjectrulesreviews.authorization.k8s.io", ""): access.review_rules,
        ("subjectaccessreviews.authorization.k8s.io", ""): access.review_access,
        ("serviceaccounts", "token"): access.issue_token,
        ("bindings", ""): binding.create,
        ("", "scale"): ScaleSubresource(server).serve,
        ("pods", "binding"): binding.create,
        ("pods", "eviction"): evictions.create,
        ("pods", "log"): streams.log,
        ("pods", "exec"): streams.require_upgrade,
        ("pods", "attach"): streams.require_upgrade,
        ("pods", "portforward"): streams.refuse_port_forward,
    }
