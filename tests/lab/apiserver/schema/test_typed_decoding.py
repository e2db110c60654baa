"""Bodies as Go's typed decoder reads them: what it makes of them, and how lists and maps of their types merge.

Sources: ``sigs.k8s.io/json`` and ``encoding/json``, ``apimachinery/pkg/runtime/serializer/json``.
"""

import json
import re

from support.conformance.replay import cases
from support.lab.request_bodies import POD, SCHEMAS, SCHEME, context, read, refusal, spec

from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.schema.decoder import Decoder

WIDGET = ServedResource(
    "example.com",
    "v1",
    "widgets",
    "Widget",
    KindBehaviour(),
    custom=True,
    definition={
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {
                        "type": "object",
                        "properties": {
                            "size": {"type": "integer"},
                            "ports": {
                                "type": "array",
                                "x-kubernetes-list-type": "map",
                                "x-kubernetes-list-map-keys": ["port"],
                                "items": {"type": "object", "properties": {"port": {"type": "integer"}}},
                            },
                            "more": {"type": "object", "additionalProperties": {"type": "string"}},
                        },
                    }
                },
            }
        }
    },
)


# -- what becomes of a body --------------------------------------------------------------------------------------------


def test_what_is_empty_is_left_out_and_what_is_always_written_is_there():
    body = spec(hostNetwork=False, nodeName="", tolerations=[], nodeSelector={}, priority=0, volumes=None)
    found = read(body)
    assert found["spec"] == {"containers": [{"name": "c", "resources": {}}], "priority": 0}
    assert found["status"] == {}


def test_a_pointer_keeps_what_it_points_to():
    found = read(spec(automountServiceAccountToken=False, securityContext={}, activeDeadlineSeconds=0))["spec"]
    assert (found["automountServiceAccountToken"], found["securityContext"], found["activeDeadlineSeconds"]) == (
        False,
        {},
        0,
    )


def test_lists_that_are_always_written_are_null_when_there_is_nothing():
    slices = SCHEME.find("discovery.k8s.io", "v1", "endpointslices")
    found = read({"metadata": {"name": "s"}, "addressType": "IPv4", "ports": []}, resource=slices)
    assert (found["endpoints"], found["ports"]) == (None, None)


def test_quantities_and_times_are_in_their_canonical_form():
    container = {"name": "c", "resources": {"limits": {"cpu": "1000m", "memory": 1024, "x": "0.5"}}}
    found = read({**spec(containers=[container]), "status": {"startTime": "2026-01-01T02:00:00.7+02:00"}})
    assert found["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1024", "x": "500m"}
    assert found["status"]["startTime"] == "2026-01-01T00:00:00Z"


def test_unknown_fields_are_dropped_and_told():
    body = {**POD, "metadata": {"name": "p", "foo": 1}, "spec": {"colour": "red", "containers": [{"imagee": "j"}]}}
    one = context(body)
    assert SCHEMAS.read(one)["metadata"] == {"name": "p"}
    assert one.warnings == [
        'unknown field "metadata.foo"',
        'unknown field "spec.colour"',
        'unknown field "spec.containers[0].imagee"',
    ]
    silent = context(body, validation="Ignore")
    SCHEMAS.read(silent)
    assert silent.warnings == []


def test_kind_and_version_may_be_missing():
    found = read({"metadata": {"name": "p"}})
    assert (found["kind"], found["apiVersion"]) == ("Pod", "v1")
    assert read({"kind": "Pod", "metadata": {"name": "p"}})["apiVersion"] == "v1"


def test_yaml_has_times_as_text():
    body = b"metadata:\n  name: p\nstatus:\n  startTime: 2026-01-01T00:00:00Z\n"
    assert read(body, media="application/yaml")["status"]["startTime"] == "2026-01-01T00:00:00Z"


def _objects(value):
    """All objects of kinds that the table knows, wherever they stand in recorded answers."""
    if isinstance(value, dict):
        group, _, version = str(value.get("apiVersion", "")).rpartition("/")
        node = SCHEMAS.types.find(group, version, value.get("kind", ""))
        if node and "metadata" in value and value["kind"] != "Status" and not value["kind"].endswith("List"):
            yield node, value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(inner)


def _answers(value):
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from [inner] if key == "response" else _answers(inner)


def _filled(value):
    text = re.sub(r"<microtime(:\d+)?>", "2026-01-01T00:00:00.000000Z", json.dumps(value))
    return json.loads(re.sub(r"<time(:\d+)?>", "2026-01-01T00:00:00Z", text).replace("<ca>", "Y2E="))


def test_what_a_real_server_has_answered_stays_as_it_is():
    found = [one for _, case in cases() for answer in _answers(case) for one in _objects(answer)]
    assert len(found) > 300
    for node, value in found:
        decoder, filled = Decoder(), _filled(value)
        assert (decoder.decode(filled, node.struct), decoder.unknown) == (filled, [])


# -- custom resources --------------------------------------------------------------------------------------------------


def test_custom_resources_keep_their_form_less_what_their_schema_does_not_know():
    spec = {"size": 0, "more": {}, "extra": 1, "ports": []}
    one = context(
        {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "foo": 1}, "spec": spec},
        resource=WIDGET,
    )
    assert SCHEMAS.read(one)["spec"] == {"size": 0, "more": {}, "ports": []}
    assert one.warnings == ['unknown field "metadata.foo"', 'unknown field "spec.extra"']


def test_custom_resources_must_say_what_they_are():
    assert "Object 'Kind' is missing in '{}'" in refusal({}, resource=WIDGET)
    body = {"apiVersion": "example.com/v2", "kind": "Widget"}
    assert refusal(body, resource=WIDGET) == (
        "the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)"
    )


def test_how_lists_of_custom_resources_merge():
    ports = SCHEMAS.of(WIDGET).at("spec").at("ports")
    assert (ports.list_type, ports.list_keys, ports.atomic) == ("map", ("port",), False)
    assert ports.element.at("port").kind == "int64"
    assert SCHEMAS.of(WIDGET).at("metadata").at("finalizers").list_type == "set"


# -- types -------------------------------------------------------------------------------------------------------------


def test_all_resources_have_types():
    assert [one.qualified_name for one in SCHEME if SCHEMAS.of(one) is None] == []


def test_how_lists_and_maps_merge():
    pod = SCHEMAS.of(SCHEME.find("", "v1", "pods"))
    containers, selector = pod.at("spec").at("containers"), pod.at("spec").at("nodeSelector")
    assert (containers.list_type, containers.list_keys, containers.merge_key) == ("map", ("name",), "name")
    assert (containers.patch_strategy, containers.go_type, containers.atomic) == (("merge",), "[]v1.Container", False)
    assert containers.element.at("ports").list_keys == ("containerPort", "protocol")
    assert selector.atomic
    assert pod.at("spec").at("tolerations").atomic
    assert pod.at("metadata").at("labels").element.kind == "string"
    assert pod.at("nothing") is None
