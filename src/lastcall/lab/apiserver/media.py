"""Which form an answer has, and how bodies are read and written: JSON, YAML, tables, metadata alone."""

from typing import Any, NamedTuple

import msgspec
import yaml

from lastcall.lab.apiserver import status
from lastcall.lab.apiserver.request import Object, Request

JSON = "application/json"
YAML = "application/yaml"
SUPPORTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


class Form(NamedTuple):
    """``transform`` is Table, PartialObjectMetadata or PartialObjectMetadataList; empty for the object itself."""

    media: str = JSON
    transform: str = ""


def negotiated(request: Request) -> Form:
    """The first form of the Accept header that can be served. ApiError (406) if there is none."""
    accept = request.headers.get("accept", "") or "*/*"
    for one in accept.split(","):
        media, *rest = (part.strip() for part in one.split(";"))
        parameters = dict(part.partition("=")[::2] for part in rest)
        if media in ("*/*", "application/*"):
            media = JSON
        if media not in (JSON, YAML):
            continue
        if not parameters.get("as"):
            return Form(media)
        if (parameters.get("g"), parameters.get("v")) == ("meta.k8s.io", "v1") and media == JSON:
            return Form(media, parameters["as"])
    raise status.not_acceptable(SUPPORTED)


def decoded(request: Request) -> Any:
    """The body as JSON has it, by the Content-Type. ApiError if it is neither JSON nor YAML."""
    media = request.headers.get("content-type", JSON).partition(";")[0].strip()
    try:
        if "yaml" in media:
            return yaml.safe_load(request.body)
        return msgspec.json.decode(request.body)
    except (msgspec.DecodeError, yaml.YAMLError) as error:
        raise status.bad_request(f"couldn't get version/kind; json parse error: {error}") from None


def encoded(obj: Object, form: Form) -> bytes:
    """The body of an answer."""
    if form.media == YAML:
        return yaml.safe_dump(obj, sort_keys=True).encode()
    return msgspec.json.encode(obj) + b"\n"
