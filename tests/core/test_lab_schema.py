"""Bodies as Go's typed decoder reads them: what it makes of them, and its words for what is wrong.

Sources: ``sigs.k8s.io/json`` and ``encoding/json``, ``test/integration/apiserver/field_validation_test.go``,
``apimachinery/pkg/runtime/serializer/json``, ``apiserver/pkg/endpoints/handlers`` (``transformDecodeError``).
"""

import json
import re

import pytest
from support.replay import cases

from lastcall.lab.apiserver.catalog import built_in
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.kinds.base import Behaviour
from lastcall.lab.apiserver.request import Request
from lastcall.lab.apiserver.routes import Route
from lastcall.lab.apiserver.schema import Schemas, bodies, gojson
from lastcall.lab.apiserver.schema.decode import Decoder
from lastcall.lab.apiserver.scheme import Resource, Scheme
from lastcall.lab.apiserver.status import ApiError

SCHEMAS = Schemas()
SCHEME = Scheme(built_in())
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
WIDGET = Resource(
    "example.com",
    "v1",
    "widgets",
    "Widget",
    Behaviour(),
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


def context(body, *, validation="", media="application/json", resource=None):
    resource = resource or SCHEME.find("", "v1", "pods")
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    query = {"fieldValidation": [validation]} if validation else {}
    request = Request("POST", "/", query, {"content-type": media}, data)
    return Context(request, Route("create", resource, "default", "", ""))


def read(body, **how):
    return SCHEMAS.read(context(body, **how))


def refusal(body, **how):
    with pytest.raises(ApiError) as error:
        read(body, **how)
    assert error.value.code == 400
    return error.value.message


def spec(**fields):
    return {**POD, "spec": {"containers": [{"name": "c"}], **fields}}


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


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (spec(containers="no"), "string into Go struct field PodSpec.spec.containers of type []v1.Container"),
        (spec(containers=["no"]), "string into Go struct field PodSpec.spec.containers of type v1.Container"),
        (spec(restartPolicy=5), "number into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy"),
        (spec(hostNetwork="yes"), "string into Go struct field PodSpec.spec.hostNetwork of type bool"),
        (
            spec(terminationGracePeriodSeconds="30"),
            "string into Go struct field PodSpec.spec.terminationGracePeriodSeconds of type int64",
        ),
        (spec(priority=1.5), "number 1.5 into Go struct field PodSpec.spec.priority of type int32"),
        (spec(priority=3_000_000_000), "number 3000000000 into Go struct field PodSpec.spec.priority of type int32"),
        (spec(nodeSelector={"a": 1}), "number into Go struct field PodSpec.spec.nodeSelector of type string"),
        (spec(nodeSelector=[]), "array into Go struct field PodSpec.spec.nodeSelector of type map[string]string"),
        (
            spec(volumes=[{"emptyDir": "x"}]),
            "string into Go struct field Volume.spec.volumes.emptyDir of type v1.EmptyDirVolumeSource",
        ),
        (
            spec(containers=[{"ports": [{"containerPort": "x"}]}]),
            "string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
        (
            spec(containers=[{"livenessProbe": {"httpGet": {"port": True}}}]),
            "bool into Go struct field HTTPGetAction.spec.containers.livenessProbe.httpGet.port of type int32",
        ),
        ({**POD, "spec": "x"}, "string into Go struct field Pod.spec of type v1.PodSpec"),
        (
            {**POD, "metadata": {"labels": "x"}},
            "string into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
        (
            {**POD, "metadata": {"creationTimestamp": 5}},
            "number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
    ],
)
def test_wrong_types(body, why):
    assert refusal(body) == f'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal {why}'


@pytest.mark.parametrize(
    ("quantity", "why"),
    [
        ("a lot", r"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ("10kk", "unable to parse quantity's suffix"),
        ("k", "unable to parse numeric part of quantity"),
    ],
)
def test_bad_quantities(quantity, why):
    body = spec(containers=[{"name": "c", "resources": {"limits": {"cpu": quantity}}}])
    assert refusal(body) == f'Pod in version "v1" cannot be handled as a Pod: {why}'


@pytest.mark.parametrize(
    ("time", "why"),
    [
        ("soon", '"soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006"'),
        ("2026-01-01", '"2026-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'),
        ("2026-13-01T00:00:00Z", '"2026-13-01T00:00:00Z": month out of range'),
        ("2026-01-01T00:00:00Zx", '"2026-01-01T00:00:00Zx": extra text: "x"'),
    ],
)
def test_bad_times(time, why):
    body = {**POD, "status": {"startTime": time}}
    assert refusal(body) == f'Pod in version "v1" cannot be handled as a Pod: parsing time {why}'


def test_a_lease_wants_six_digits():
    leases = SCHEME.find("coordination.k8s.io", "v1", "leases")
    body = {"metadata": {"name": "l"}, "spec": {"renewTime": "2026-01-01T00:00:00Z"}}
    assert refusal(body, resource=leases).endswith(
        'parsing time "2026-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"'
    )
    body["spec"]["renewTime"] = "2026-01-01T02:00:00.123456+02:00"
    assert read(body, resource=leases)["spec"]["renewTime"] == "2026-01-01T00:00:00.123456Z"


def test_only_base64_is_bytes():
    secrets = SCHEME.find("", "v1", "secrets")
    assert read({"metadata": {"name": "s"}, "data": {"a": "YQ==", "b": ""}}, resource=secrets)["data"] == {
        "a": "YQ==",
        "b": "",
    }
    assert refusal({"metadata": {"name": "s"}, "data": {"a": "no way"}}, resource=secrets) == (
        'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 2'
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)"),
        (
            b"{not json",
            (
                "couldn't get version/kind; json parse error: invalid character 'n' looking for beginning of"
                " object key string ({not json)"
            ),
        ),
        (
            b'"a text"',
            (
                "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type"
                ' struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
                " (2261207465787422)"
            ),
        ),
        (
            b'{"kind": 5}',
            (
                "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct"
                ' field .kind of type string ({"kind": 5})'
            ),
        ),
        (
            b'{"apiVersion": "a/b/c", "kind": "Pod"}',
            ('unexpected GroupVersion string: a/b/c ({"apiVersion": "a/b/c", "kind" ...)'),
        ),
    ],
)
def test_bodies_that_do_not_say_what_they_are(body, message):
    assert refusal(body) == f"the object provided is unrecognized (must be of type Pod): {message}"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            ("v1", "ConfigMap"),
            (
                'ConfigMap in version "v1" cannot be handled as a Pod: converting (v1.ConfigMap) to'
                " (core.Pod): unknown conversion"
            ),
        ),
        (
            ("v2", "Pod"),
            (
                'Pod in version "v2" cannot be handled as a Pod: no kind "Pod" is registered for version "v2"'
                ' in scheme "pkg/runtime/scheme.go:111"'
            ),
        ),
        (
            ("apps/v1", "Nothing"),
            (
                'Nothing in version "v1" cannot be handled as a Pod: no kind "Nothing" is registered'
                ' for version "apps/v1" in scheme "pkg/runtime/scheme.go:111"'
            ),
        ),
    ],
)
def test_other_kinds(said, message):
    assert refusal({"apiVersion": said[0], "kind": said[1], "metadata": {"name": "p"}}) == message


def test_the_same_kind_in_another_version():
    autoscalers = SCHEME.find("autoscaling", "v2", "horizontalpodautoscalers")
    body = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}}
    assert refusal(body, resource=autoscalers) == (
        "the API version in the data (autoscaling/v1) does not match the expected API version (autoscaling/v2)"
    )


def test_too_large():
    with pytest.raises(ApiError) as error:
        bodies.check_size(context(b"x" * (3 << 20) + b"x").request)
    assert (error.value.code, error.value.reason) == (413, "RequestEntityTooLarge")


def test_media_types():
    with pytest.raises(ApiError) as error:
        read(POD, media="text/plain")
    assert error.value.code == 415
    assert read(POD, media="application/json; charset=utf-8")["metadata"]["name"] == "p"


# -- strict ------------------------------------------------------------------------------------------------------------

DEPLOYMENT = b"""
{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
 "unknown1": "a", "unknownTwice": "b", "unknownTwice": "c", "paused": true, "paused": false,
 "template": {"spec": {"containers": [
  {"name": "c", "unknownNested": 1, "imagePullPolicy": "Always", "imagePullPolicy": "Never"}]}}}}
"""


def test_strict_tells_what_is_unknown_or_repeated_in_the_order_of_the_text():
    deployments = SCHEME.find("apps", "v1", "deployments")
    assert refusal(DEPLOYMENT, validation="Strict", resource=deployments) == (
        'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field'
        ' "spec.unknown1", unknown field "spec.unknownTwice", duplicate field "spec.paused", unknown field'
        ' "spec.template.spec.containers[0].unknownNested", duplicate field'
        ' "spec.template.spec.containers[0].imagePullPolicy"'
    )


def test_strict_yaml_tells_the_lines():
    body = b"metadata:\n  name: p\nspec:\n  zzz: 1\n  nodeName: a\n  nodeName: b\n  aaa: 1\n"
    assert refusal(body, validation="Strict", media="application/yaml") == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: yaml: unmarshal errors:\n'
        '  line 6: key "nodeName" already set in map, unknown field "spec.aaa", unknown field "spec.zzz"'
    )


def test_a_wrong_type_is_told_before_unknown_fields():
    message = refusal(spec(foo=1, hostNetwork=3), validation="Strict")
    assert message.endswith("cannot unmarshal number into Go struct field PodSpec.spec.hostNetwork of type bool")


def test_a_patch_that_makes_nonsense_is_422():
    with pytest.raises(ApiError) as error:
        SCHEMAS.checked({**POD, "spec": {"containers": 1}}, context(POD))
    assert error.value.code == 422
    assert error.value.message.startswith(' "" is invalid: patch: Invalid value: "{')
    assert error.value.message.endswith("PodSpec.spec.containers of type []v1.Container")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"activeDeadlineSeconds": "x"}, "unrecognized type: int64"),
        ({"activeDeadlineSeconds": 1.5}, "cannot convert float64 to int64"),
        ({"hostNetwork": "x"}, "unrecognized type: bool"),
        ({"restartPolicy": 5}, "cannot convert int64 to v1.RestartPolicy"),
        ({"nodeName": True}, "unrecognized type: string"),
        ({"containers": "x"}, "cannot restore slice from string"),
        ({"nodeSelector": []}, "cannot restore map from slice"),
        ({"securityContext": 1}, "cannot restore struct from: int64"),
        ({"nodeName": 1, "containers": "x"}, "cannot restore slice from string"),
    ],
)
def test_strategic_patches_have_words_of_their_own(fields, why):
    with pytest.raises(ApiError) as error:
        SCHEMAS.checked(spec(**fields), context(POD), shown=lambda _: "map[]", strategic=True)
    assert error.value.message == f' "" is invalid: patch: Invalid value: "map[]": {why}'


def test_strategic_patches_may_say_whole_numbers_with_a_fraction():
    made = SCHEMAS.checked(spec(activeDeadlineSeconds=5.0), context(POD), strategic=True)
    assert repr(made["spec"]["activeDeadlineSeconds"]) == "5"


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
    assert [one.qualified for one in SCHEME if SCHEMAS.of(one) is None] == []


def test_how_lists_and_maps_merge():
    pod = SCHEMAS.of(SCHEME.find("", "v1", "pods"))
    containers, selector = pod.at("spec").at("containers"), pod.at("spec").at("nodeSelector")
    assert (containers.list_type, containers.list_keys, containers.merge_key) == ("map", ("name",), "name")
    assert (containers.patch_strategy, containers.go, containers.atomic) == (("merge",), "[]v1.Container", False)
    assert containers.element.at("ports").list_keys == ("containerPort", "protocol")
    assert selector.atomic
    assert pod.at("spec").at("tolerations").atomic
    assert pod.at("metadata").at("labels").element.kind == "string"
    assert pod.at("nothing") is None


# -- the words of Go's scanner -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ("{'a':1}", "invalid character '\\'' looking for beginning of object key string"),
        ('{"a":tru}', "invalid character '}' in literal true (expecting 'e')"),
        ('"a\nb"', "invalid character '\\n' in string literal"),
        (r'"\q"', "invalid character 'q' in string escape code"),
        (r'"\u12g4"', r"invalid character 'g' in \u hexadecimal character escape"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1e", "unexpected end of JSON input"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("{} x", "invalid character 'x' after top-level value"),
        ('{"a":[1,{"b":"c"}]}', ""),
        ("  null ", ""),
    ],
)
def test_syntax_errors(text, why):
    assert gojson.fault(text) == why


def test_repeated_fields_are_seen_through_escapes():
    assert gojson.complaints(b'{"a":"\\u0022","a":1}', {"a": 1}) == ['duplicate field "a"']
    assert gojson.complaints(b'{"a":{"b":1,"b":"\\"x"}}', {"a": {"b": '"x'}}) == ['duplicate field "a.b"']
    assert gojson.complaints(b'{"a":"\\"x"}', {"a": '"x'}) == []
