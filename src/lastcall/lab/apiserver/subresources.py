"""The subresources that are more than a part of their object, and the resources that are only ever posted."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from lastcall.lab.apiserver.access import Access
from lastcall.lab.apiserver.binding import Binding
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.eviction import Evictions
from lastcall.lab.apiserver.request import Response
from lastcall.lab.apiserver.scale import Scales
from lastcall.lab.apiserver.streams import Streams

if TYPE_CHECKING:
    from lastcall.lab.apiserver.server import ApiServer

Handler = Callable[[Context], Awaitable[Response]]


def subresources(server: "ApiServer") -> Mapping[tuple[str, str], Handler]:
    """Who serves which: by qualified resource and subresource, which is empty for what is posted and never stored.

    Without a resource: of all that have this subresource.
    """
    streams = Streams(server)
    evictions = Evictions(server)
    binding = Binding(server)
    access = Access(server)
    return {
        ("selfsubjectreviews.authentication.k8s.io", ""): access.self_review,
        ("tokenreviews.authentication.k8s.io", ""): access.token_review,
        ("localsubjectaccessreviews.authorization.k8s.io", ""): access.access_review,
        ("selfsubjectaccessreviews.authorization.k8s.io", ""): access.access_review,
        ("selfsubjectrulesreviews.authorization.k8s.io", ""): access.rules_review,
        ("subjectaccessreviews.authorization.k8s.io", ""): access.access_review,
        ("serviceaccounts", "token"): access.token_request,
        ("bindings", ""): binding.create,
        ("", "scale"): Scales(server).serve,
        ("pods", "binding"): binding.create,
        ("pods", "eviction"): evictions.create,
        ("pods", "log"): streams.log,
        ("pods", "exec"): streams.refuse,
        ("pods", "attach"): streams.refuse,
        ("pods", "portforward"): streams.forward,
    }
