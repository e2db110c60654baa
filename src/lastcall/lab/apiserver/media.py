"""Which form an answer has, and how bodies are read and written: JSON and YAML, objects, tables and metadata alone.

What a client accepts is weighed as go-restful and ``apiserver/pkg/endpoints/handlers/negotiation`` do it, one after the
other. Protobuf is accepted and answered by JSON, which every client that asks for it reads as well.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import yaml

from lastcall.lab.apiserver import status, yaml_answers
from lastcall.lab.apiserver.request import Object, Request
from lastcall.lab.apiserver.schema import gojson, strict_yaml

JSON = "application/json"
YAML = "application/yaml"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_MEDIA = (JSON, YAML, _PROTOBUF)
_STREAMS = (f"{JSON};stream=watch", f"{_PROTOBUF};stream=watch")
SUPPORTED = ", ".join(_MEDIA)

_BROWSERS = ("curl", "Wget", "Mozilla/5.0")
"""People look at what these get."""

_TRUE = ("1", "t", "T", "true", "TRUE", "True")


class Form(NamedTuple):
    """``transform`` is Table, PartialObjectMetadata or PartialObjectMetadataList of ``version``; empty for the object itself."""

    media: str = JSON
    transform: str = ""
    version: str = "v1"
    pretty: bool = False


class _Clause(NamedTuple):
    """One of the media types in an Accept header."""

    media: str
    quality: float
    parameters: Mapping[str, str]


def negotiated(request: Request, *, collection: bool = False, stream: bool = False, custom: bool = False) -> Form:
    """The form that the client likes best of those that there are. ApiError (406) if there is none.

    ``collection``: of a list or watch; ``stream``: of a watch; ``custom``: of custom resources, which have no protobuf
    but that of their metadata, and are served without go-restful.
    """
    form = _form(request.headers.get("accept", ""), collection, stream, custom)
    return form._replace(pretty=True) if not form.pretty and _for_people(request) else form


@lru_cache(maxsize=256)
def _form(accept: str, collection: bool, stream: bool, custom: bool) -> Form:
    if not accept:
        return Form()
    if not custom and not any(one.partition(";")[0].strip(" ") in ("*/*", *_MEDIA) for one in accept.split(",")):
        raise status.no_representation(", ".join((*_MEDIA, *_STREAMS) if collection else _MEDIA))
    for clause in sorted(_clauses(accept), key=lambda one: (-one.quality, one.media.count("*"))):
        for media in _MEDIA:
            if clause.media in (media, "application/*", "*/*") and (
                form := _allowed(media, clause.parameters, custom=custom)
            ):
                if stream and media == YAML:
                    raise status.not_acceptable(", ".join(_STREAMS))
                return form
    raise status.not_acceptable(SUPPORTED)


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


def _allowed(media: str, parameters: Mapping[str, str], *, custom: bool) -> Form | None:
    """None if this media type cannot be had with these parameters."""
    stream = parameters.get("stream", "")
    if parameters.get("sv") or stream not in ("", "watch") or (stream and media == YAML):
        return None
    served = JSON if media == _PROTOBUF else media
    pretty = parameters.get("pretty") == "1"
    if not parameters.keys() & {"as", "g", "v"}:
        if custom and media == _PROTOBUF:
            return None
        return Form(served, pretty=pretty)
    transform, version = parameters.get("as", ""), parameters.get("v", "")
    known = ("PartialObjectMetadata", "PartialObjectMetadataList", *(() if media == _PROTOBUF else ("Table",)))
    if transform not in known or parameters.get("g") != "meta.k8s.io" or version not in ("v1", "v1beta1"):
        return None
    return Form(served, transform, version, pretty)


def _for_people(request: Request) -> bool:
    if said := request.parameter("pretty"):
        return said in _TRUE
    return request.headers.get("user-agent", "").startswith(_BROWSERS)


def decoded(request: Request) -> Any:
    """The body as JSON has it, by the Content-Type. ApiError if that is, or if the body is, neither JSON nor YAML."""
    media = request.headers.get("content-type", "").partition(";")[0].strip() or JSON
    try:
        if media.endswith(("/yaml", "+yaml")):
            return strict_yaml.first(request.body).value
        if media.endswith(("/json", "+json")):
            return gojson.decoded(request.body)
    except (gojson.Malformed, yaml.YAMLError) as error:
        raise status.bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    raise status.unsupported_media_type(SUPPORTED)


def encoded(obj: Object, form: Form) -> bytes:
    """The body of an answer."""
    if form.media == YAML:
        return yaml_answers.dumped(obj)
    return written(msgspec.json.encode(obj), form)


def pieces(head: Object, name: str, items: Iterable[bytes], form: Form) -> Iterator[bytes]:
    """The body of a list in pieces, each made when it is asked for: ``head`` is all but the field ``name``."""
    if form.media == YAML:
        before = {key: value for key, value in head.items() if key < name}
        yield yaml_answers.dumped(before) + f"{name}:\n".encode()
        for item in items:
            yield yaml_answers.dumped([msgspec.json.decode(item)])
        if after := {key: value for key, value in head.items() if key > name}:
            yield yaml_answers.dumped(after)
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


def written(json: bytes, form: Form) -> bytes:
    """JSON as it is sent: for programs one line with its end, for people indented and without."""
    return msgspec.json.format(json, indent=2) if form.pretty else json + b"\n"
