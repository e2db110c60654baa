"""Bodies that are refused, in the words of Go's typed decoder.

Sources: ``encoding/json``, ``apiserver/pkg/endpoints/handlers`` (``transformDecodeError``).
"""

import pytest
from support.lab.request_bodies import POD, SCHEME, context, read, refusal, spec

from lastcall_lab.apiserver.encoding import request_bodies
from lastcall_lab.apiserver.values.api_errors import ApiError


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
        request_bodies.check_size(context(b"x" * (3 << 20) + b"x").request)
    assert (error.value.code, error.value.reason) == (413, "RequestEntityTooLarge")


def test_media_types():
    with pytest.raises(ApiError) as error:
        read(POD, media="text/plain")
    assert error.value.code == 415
    assert read(POD, media="application/json; charset=utf-8")["metadata"]["name"] == "p"
