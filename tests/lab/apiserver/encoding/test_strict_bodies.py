"""Fields that are unknown or repeated, what patches make, and the words of Go's scanner.

Sources: ``sigs.k8s.io/json``, ``test/integration/apiserver/field_validation_test.go``.
"""

import pytest
from support.lab.request_bodies import POD, SCHEMAS, SCHEME, context, refusal, spec

from lastcall_lab.apiserver.encoding import go_json
from lastcall_lab.apiserver.values.api_errors import ApiError

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
        SCHEMAS.check_patched({**POD, "spec": {"containers": 1}}, context(POD))
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
        SCHEMAS.check_patched(spec(**fields), context(POD), shown=lambda _: "map[]", strategic=True)
    assert error.value.message == f' "" is invalid: patch: Invalid value: "map[]": {why}'


def test_strategic_patches_may_say_whole_numbers_with_a_fraction():
    made = SCHEMAS.check_patched(spec(activeDeadlineSeconds=5.0), context(POD), strategic=True)
    assert repr(made["spec"]["activeDeadlineSeconds"]) == "5"


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
    assert go_json.syntax_error(text) == why


def test_repeated_fields_are_seen_through_escapes():
    assert go_json.strict_complaints(b'{"a":"\\u0022","a":1}', {"a": 1}) == ['duplicate field "a"']
    assert go_json.strict_complaints(b'{"a":{"b":1,"b":"\\"x"}}', {"a": {"b": '"x'}}) == ['duplicate field "a.b"']
    assert go_json.strict_complaints(b'{"a":"\\"x"}', {"a": '"x'}) == []
