"""Request bodies in Kubernetes' protobuf, which kubectl sends for built-in kinds."""

from dataclasses import replace

import msgspec

from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Request

MEDIA = "application/vnd.kubernetes.protobuf"


def convert_to_json(request: Request) -> Request:
    """The request with a protobuf body converted to JSON. ApiError if it is invalid."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != MEDIA or not request.body:
        return request
    # Imported lazily: the decoder takes time to load, and is not needed before the first request of kubectl.
    from lastcall_lab.apiserver.encoding import protobuf_messages  # noqa: PLC0415

    try:
        body = msgspec.json.encode(protobuf_messages.decode_envelope(request.body))
    except (protobuf_messages.InvalidProtobuf, msgspec.DecodeError, ArithmeticError, OSError, ValueError) as error:
        raise api_errors.bad_request_error(str(error)) from None  # also for times out of range and invalid JSON within
    return replace(request, body=body, headers={**request.headers, "content-type": "application/json"})
