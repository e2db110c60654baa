"""What clients accept, and what they get."""

import pytest

from lastcall_lab.apiserver.encoding import media_types, yaml_writer
from lastcall_lab.apiserver.encoding.media_types import ResponseFormat
from lastcall_lab.apiserver.values.api_errors import ApiError
from lastcall_lab.apiserver.values.request import Request

META = "g=meta.k8s.io;v=v1"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def request(accept="", target="/api/v1/pods", **headers):
    return Request.of("GET", target, headers={"accept": accept, **headers})


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", ResponseFormat()),
        ("*/*", ResponseFormat()),
        ("application/json", ResponseFormat()),
        ("application/yaml", ResponseFormat("application/yaml")),
        ("text/plain, application/yaml", ResponseFormat("application/yaml")),
        ("application/json;q=0.5, application/yaml", ResponseFormat("application/yaml")),
        ("application/yaml;q=0.5, */*;q=0.1", ResponseFormat("application/yaml")),
        (f"{PROTOBUF},application/json", ResponseFormat()),
        (PROTOBUF, ResponseFormat()),
        ("application/json;pretty=1", ResponseFormat(pretty=True)),
        ("application/json;stream=watch", ResponseFormat()),
        ("application/json;charset=utf-8", ResponseFormat()),
        (f"application/json;as=Table;{META}", ResponseFormat(transform="Table")),
        ("application/json;as=Table;g=meta.k8s.io;v=v1beta1", ResponseFormat(transform="Table", version="v1beta1")),
        (
            f"application/json;as=Table;g=meta.k8s.io;v=v2,application/json;as=Table;{META}",
            ResponseFormat(transform="Table"),
        ),
        ("application/json;as=Table;g=meta.k8s.io;v=v2,application/json", ResponseFormat()),
        (f"{PROTOBUF};as=Table;{META},application/yaml", ResponseFormat("application/yaml")),
        (
            f"application/yaml;as=PartialObjectMetadata;{META}",
            ResponseFormat("application/yaml", "PartialObjectMetadata"),
        ),
    ],
)
def test_negotiation(accept, form):
    assert media_types.negotiate_format(request(accept)) == form


ALL = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
STREAMS = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"


@pytest.mark.parametrize(
    ("accept", "how", "message", "details"),
    [
        ("text/plain", {}, f"406: Not Acceptable\n\nAvailable representations: {ALL}", {}),
        ("text/plain", {"collection": True}, f"406: Not Acceptable\n\nAvailable representations: {ALL}, {STREAMS}", {}),
        (f"application/json;as=Nothing;{META}", {}, f"only the following media types are accepted: {ALL}", None),
        ("application/json;as=Table;v=v1", {}, f"only the following media types are accepted: {ALL}", None),
        ("application/json;stream=other", {}, f"only the following media types are accepted: {ALL}", None),
        (
            "application/yaml",
            {"collection": True, "stream": True},
            f"only the following media types are accepted: {STREAMS}",
            None,
        ),
    ],
)
def test_what_cannot_be_had(accept, how, message, details):
    with pytest.raises(ApiError) as error:
        media_types.negotiate_format(request(accept), **how)
    assert (error.value.code, error.value.reason, error.value.message) == (406, "NotAcceptable", message)
    assert error.value.details == details


@pytest.mark.parametrize(
    ("target", "agent", "pretty"),
    [
        ("/x", "curl/8.0", True),
        ("/x", "kubectl/v1.36.2", False),
        ("/x?pretty=true", "kubectl", True),
        ("/x?pretty=false", "curl/8.0", False),
        ("/x?pretty=", "Wget/1", True),
    ],
)
def test_people_get_it_indented(target, agent, pretty):
    form = media_types.negotiate_format(request(target=target, **{"user-agent": agent}))
    assert form.pretty is pretty
    assert media_types.encode_body({"a": {"b": 1}}, form) == (
        b'{\n  "a": {\n    "b": 1\n  }\n}' if pretty else b'{"a":{"b":1}}\n'
    )


def test_yaml_as_kubernetes_writes_it():
    obj = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z", "name": "a", "resourceVersion": "12"},
        "spec": {"list": ["x", "on", "1e3", ""], "empty": {}, "none": None, "number": 1, "yes": True, "y": "y"},
        "text": "a\nb\n",
        "long": "word " * 40 + "end",
        "odd": "*a: b",
    }
    expected = (
        'apiVersion: v1\nkind: Pod\nlong: LONG\nmetadata:\n  creationTimestamp: "2026-01-01T00:00:00Z"\n  name: a\n'
        '  resourceVersion: "12"\nodd: \'*a: b\'\nspec:\n  empty: {}\n  list:\n  - x\n  - "on"\n  - "1e3"\n  - ""\n'
        '  none: null\n  number: 1\n  "y": "y"\n  "yes": true\ntext: |\n  a\n  b\n'
    )
    assert yaml_writer.dump_yaml(obj).decode() == expected.replace("LONG", obj["long"])


@pytest.mark.parametrize("kind", ["", "application/json", "application/merge-patch+json", "application/yaml"])
def test_bodies_are_read_by_their_type(kind):
    body = Request("POST", "/x", headers={"content-type": kind}, body=b'{"when": "2026-01-01T00:00:00Z"}')
    assert media_types.decode_body(body) == {"when": "2026-01-01T00:00:00Z"}


def test_bodies_of_other_types_are_refused():
    with pytest.raises(ApiError) as error:
        media_types.decode_body(Request("POST", "/x", headers={"content-type": "text/plain"}, body=b"{}"))
    assert error.value.code == 415
