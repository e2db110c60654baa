"""What an answer of the API server that is no success is for whoever has asked."""

import json

import pytest

from lastcall.adapters.kube.api_errors import response_error
from lastcall.adapters.kube.transport import ApiResponse
from lastcall.errors import ApiUnavailable, TooManyRequests

STATUS = {"kind": "Status", "status": "Failure", "message": "busy", "reason": "TooManyRequests", "code": 429}


@pytest.mark.parametrize(
    ("headers", "body", "after"),
    [
        ({"retry-after": "7"}, b"Too many requests, please try again later.", 7),
        ({"retry-after": "7"}, json.dumps(STATUS).encode(), 7),
        ({"retry-after": "7"}, json.dumps({**STATUS, "details": {"kind": "pods"}}).encode(), 7),
        ({"retry-after": "7"}, json.dumps({**STATUS, "details": {"retryAfterSeconds": 3}}).encode(), 3),
        ({}, json.dumps({**STATUS, "details": {"retryAfterSeconds": 3}}).encode(), 3),
        ({"retry-after": "soon"}, json.dumps(STATUS).encode(), None),
        ({}, b"busy", None),
    ],
)
def test_how_long_the_server_asks_to_wait(headers, body, after):
    """By the header, which a proxy or the server's own limit sends without a Status, or by the Status, which comes first."""
    found = response_error(ApiResponse(429, headers, body))
    assert isinstance(found, TooManyRequests)
    assert found.retry_after == after


def test_one_that_cannot_serve_now_may_ask_for_it_too():
    found = response_error(ApiResponse(503, {"retry-after": "2"}, b"starting"))
    assert isinstance(found, ApiUnavailable)
    assert (found.details["retryAfterSeconds"], str(found)) == (2, "starting")
