"""Bodies of requests, and what the lab's API server reads in them or refuses."""

import json

import pytest

from lastcall_lab.apiserver.catalog.built_in_resources import built_in_resources
from lastcall_lab.apiserver.resources.scheme import ResourceScheme
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.routing.routes import Route
from lastcall_lab.apiserver.schema import Schemas
from lastcall_lab.apiserver.values.api_errors import ApiError
from lastcall_lab.apiserver.values.request import Request

SCHEMAS = Schemas()
SCHEME = ResourceScheme(built_in_resources())
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}


def context(body, *, validation="", media="application/json", resource=None):
    """Of a creation, of a pod if nothing else is said."""
    resource = resource or SCHEME.find("", "v1", "pods")
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    query = {"fieldValidation": [validation]} if validation else {}
    request = Request("POST", "/", query, {"content-type": media}, data)
    return RequestContext(request, Route("create", resource, "default", "", ""))


def read(body, **how):
    """The object."""
    return SCHEMAS.read(context(body, **how))


def refusal(body, **how):
    """The message of the 400."""
    with pytest.raises(ApiError) as error:
        read(body, **how)
    assert error.value.code == 400
    return error.value.message


def spec(**fields):
    """A pod with these fields."""
    return {**POD, "spec": {"containers": [{"name": "c"}], **fields}}
