"""Content negotiation and codecs: JSON and YAML, objects, tables and partial metadata.

The Accept header is evaluated like go-restful and then ``apiserver/pkg/endpoints/handlers/negotiation``. Requests for
protobuf get JSON, which every such client also reads.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import yaml

from lastcall_lab.apiserver.encoding import go_json, strict_yaml, yaml_writer
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object, Request

JSON = "application/json"
YAML = "application/yaml"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_MEDIA = (JSON, YAML, _PROTOBUF)
_STREAMS = (f"{JSON};stream=watch", f"{_PROTOBUF};stream=watch")
SUPPORTED = ", ".join(_MEDIA)

_BROWSERS = ("curl", "Wget", "Mozilla/5.0")
"""User agents of interactive clients, which get indented JSON."""

_TRUE = ("1", "t", "T", "true", "TRUE", "True")


class ResponseFormat(NamedTuple):
    """``transform`` is empty for the object itself.

    Otherwise it is Table, PartialObjectMetadata or PartialObjectMetadataList, of ``version``.
    """

    media: str = JSON
    transform: str = ""
    version: str = "v1"
    pretty: bool = False


class _Clause(NamedTuple):
    """One media type of an Accept header."""

    media: str
    quality: float
    parameters: Mapping[str, str]


def negotiate_format(
    request: Request, *, collection: bool = False, stream: bool = False, custom: bool = False
) -> ResponseFormat:
    """The best format that the client accepts. ApiError (406) if there is none.

    ``collection``: for a list or watch; ``stream``: for a watch; ``custom``: for custom resources, which support
    protobuf only for partial metadata and are served without go-restful.
    """
    form = _form(request.headers.get("accept", ""), collection, stream, custom)
    return form._replace(pretty=True) if not form.pretty and _for_people(request) else form


@lru_cache(maxsize=256)
def _form(accept: str, collection: bool, stream: bool, custom: bool) -> ResponseFormat:
    if not accept:
        return ResponseFormat()
    if not custom and not any(one.partition(";")[0].strip(" ") in ("*/*", *_MEDIA) for one in accept.split(",")):
        raise api_errors.no_representation_error(", ".join((*_MEDIA, *_STREAMS) if collection else _MEDIA))
    for clause in sorted(_clauses(accept), key=lambda one: (-one.quality, one.media.count("*"))):
        for media in _MEDIA:
            if clause.media in (media, "application/*", "*/*") and (
                form := _allowed_format(media, clause.parameters, custom=custom)
            ):
                if stream and media == YAML:
                    raise api_errors.not_acceptable_error(", ".join(_STREAMS))
                return form
    raise api_errors.not_acceptable_error(SUPPORTED)


def _clauses(accept: str) -> Iterator[_Clause]:
    for one in accept.split(","):
        media, *rest = (part.strip(" ") for part in one.split(";"))
        pairs = [part.split("=") for part in rest]
        parameters = {pair[0].strip(" "): pair[1].strip(" ") for pair in pairs if len(pair) == 2 and pair[1]}
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        yield _Clause("*/*" if media == "*" else media, quality, parameters)


def _allowed_format(media: str, parameters: Mapping[str, str], *, custom: bool) -> ResponseFormat | None:
    """None if this media type is not available with these parameters."""
    stream = parameters.get("stream", "")
    if parameters.get("sv") or stream not in ("", "watch") or (stream and media == YAML):
        return None
    served = JSON if media == _PROTOBUF else media
    pretty = parameters.get("pretty") == "1"
    if not parameters.keys() & {"as", "g", "v"}:
        if custom and media == _PROTOBUF:
            return None
        return ResponseFormat(served, pretty=pretty)
    transform, version = parameters.get("as", ""), parameters.get("v", "")
    known = ("PartialObjectMetadata", "PartialObjectMetadataList", *(() if media == _PROTOBUF else ("Table",)))
    if transform not in known or parameters.get("g") != "meta.k8s.io" or version not in ("v1", "v1beta1"):
        return None
    return ResponseFormat(served, transform, version, pretty)


def _for_people(request: Request) -> bool:
    if said := request.parameter("pretty"):
        return said in _TRUE
    return request.headers.get("user-agent", "").startswith(_BROWSERS)


def decode_body(request: Request) -> Any:
    """Decodes the body by its Content-Type. ApiError if it is neither JSON nor YAML, or invalid."""
    media = request.headers.get("content-type", "").partition(";")[0].strip() or JSON
    try:
        if media.endswith(("/yaml", "+yaml")):
            return strict_yaml.first_document(request.body).value
        if media.endswith(("/json", "+json")):
            return go_json.decode_json(request.body)
    except (go_json.MalformedJson, yaml.YAMLError) as error:
        raise api_errors.bad_request_error(f"couldn't get version/kind; json parse error: {error}") from None
    raise api_errors.unsupported_media_type_error(SUPPORTED)


def encode_body(obj: Object, form: ResponseFormat) -> bytes:
    """Encodes the body of a response."""
    if form.media == YAML:
        return yaml_writer.dump_yaml(obj)
    return format_json(msgspec.json.encode(obj), form)


def encode_list(head: Object, name: str, items: Iterable[bytes], form: ResponseFormat) -> Iterator[bytes]:
    """A list's body in pieces, each encoded on demand: ``head`` is everything except the field ``name``."""
    if form.media == YAML:
        before = {key: value for key, value in head.items() if key < name}
        yield yaml_writer.dump_yaml(before) + f"{name}:\n".encode()
        for item in items:
            yield yaml_writer.dump_yaml([msgspec.json.decode(item)])
        if after := {key: value for key, value in head.items() if key > name}:
            yield yaml_writer.dump_yaml(after)
        return
    yield from _json_pieces(msgspec.json.encode(head), name.encode(), items, pretty=form.pretty)


def _json_pieces(head: bytes, name: bytes, items: Iterable[bytes], *, pretty: bool) -> Iterator[bytes]:
    if pretty:
        head = msgspec.json.format(head, indent=2)
        begin, between, end = b'%s,\n  "%s": [\n    ' % (head[:-2], name), b",\n    ", b"\n  ]\n}"
    else:
        begin, between, end = b'%s,"%s":[' % (head[:-1], name), b",", b"]}\n"
    for item in items:
        yield begin
        yield msgspec.json.format(item, indent=2).replace(b"\n", b"\n    ") if pretty else item
        begin = between
    yield end


def format_json(json: bytes, form: ResponseFormat) -> bytes:
    """The JSON to send: one line with a newline for programs; indented without one for people."""
    return msgspec.json.format(json, indent=2) if form.pretty else json + b"\n"
