"""What a server answers to a delete: the object, a Status, or what nobody can read."""

import json

import pytest

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import PODS
from lastcall.adapters.kube.transport import ApiResponse
from lastcall.errors import Unavailable
from lastcall.model.observed import FailoverPod


class Says:
    """A transport that gives every request the same answer."""

    def __init__(self, body):
        self._body = body

    async def request(self, *_, **__):
        return ApiResponse(200, {}, self._body)


async def deleted(body):
    return await Client(Says(body)).delete_and_decode(PODS.with_shape(FailoverPod), "a", namespace="default")


async def test_the_object_as_it_is_now():
    pod = {"metadata": {"name": "a", "namespace": "default", "uid": "1", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert (await deleted(json.dumps(pod).encode())).metadata.uid == "1"


async def test_a_status_is_no_object():
    assert await deleted(b'{"kind":"Status","status":"Success","metadata":[]}') is None


@pytest.mark.parametrize("body", [b"<html>Welcome</html>", b'{"metadata":{"name":"\xff","namespace":"d"}}', b"[]"])
async def test_what_cannot_be_read_says_nothing_of_the_pod(body):
    with pytest.raises(Unavailable, match="cannot be read"):
        await deleted(body)
