"""The body of a creation: JSON or YAML, fields that nobody knows or that come twice, and what the path says already."""

import pytest
from support.conformance.objects import CONTAINER, config_map, pod

from lastcall.adapters.kube.resources import CONFIG_MAPS, PODS

source = pytest.mark.source
CREATE = "staging/src/k8s.io/apiserver/pkg/endpoints/handlers/create.go"


@source("https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation")
async def test_unknown_fields_are_warned_of(api):
    """By default an unknown field is dropped with a warning that has its path."""
    reply = await api.create(CONFIG_MAPS, {**config_map(), "dada": {}}).reply()
    assert reply.status == 201
    assert reply.headers["warning"] == '299 - "unknown field \\"dada\\""'
    assert "dada" not in reply.body


@source("https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation")
async def test_unknown_fields_are_refused_by_strict_validation(api):
    """400; all of them are named, each with its path."""
    body = pod(restartPolizy="x", containers=[{**CONTAINER, "imagine": "y"}])
    status = await api.create(PODS, body, fieldValidation="Strict").refused(400, "BadRequest")
    assert 'unknown field "spec.containers[0].imagine"' in status["message"]
    assert 'unknown field "spec.restartPolizy"' in status["message"]
    assert "strict decoding error" in status["message"]


@source("https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation")
async def test_duplicate_fields_are_refused_by_strict_validation(api):
    """A key that comes twice in an object of JSON."""
    body = b'{"metadata":{"name":"m"},"data":{"a":"1"},"data":{"b":"2"}}'
    status = await api.ask("POST", api.at(CONFIG_MAPS), body, fieldValidation="Strict").refused(400, "BadRequest")
    assert 'duplicate field "data"' in status["message"]


@source("https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation")
async def test_of_duplicate_fields_the_last_counts(api):
    """Without strict validation they are warned of."""
    body = b'{"metadata":{"name":"m"},"immutable":true,"immutable":false}'
    reply = await api.ask("POST", api.at(CONFIG_MAPS), body).reply()
    assert reply.good().get("immutable") is False
    assert 'duplicate field \\"immutable\\"' in reply.headers["warning"]


@source("https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation")
async def test_field_validation_may_be_switched_off(api):
    """Ignore means no warning."""
    reply = await api.create(CONFIG_MAPS, {**config_map(), "dada": {}}, fieldValidation="Ignore").reply()
    assert (reply.status, "warning" in reply.headers) == (201, False)


@source("staging/src/k8s.io/apimachinery/pkg/runtime/serializer/json/json.go")
async def test_a_body_of_yaml(api):
    """application/yaml is read as well."""
    body = b"kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: cm\ndata:\n  a: 'yes'\n"
    made = await api.ask("POST", api.at(CONFIG_MAPS), body, kind="application/yaml")
    assert made["data"] == {"a": "yes"}


@source("staging/src/k8s.io/apimachinery/pkg/runtime/serializer/json/json.go")
async def test_a_body_of_yaml_has_the_types_of_json(api):
    """A number is no text."""
    body = b"metadata: {name: cm}\ndata: {a: 1}\n"
    status = await api.ask("POST", api.at(CONFIG_MAPS), body, kind="application/yaml").refused(400, "BadRequest")
    assert "cannot unmarshal number into Go struct field ConfigMap.data of type string" in status["message"]


@source("staging/src/k8s.io/apimachinery/pkg/runtime/serializer/json/json.go")
async def test_yaml_is_of_version_1_1(api):
    """An unquoted y is true, and no text."""
    body = b"metadata: {name: cm}\ndata: {a: y}\n"
    status = await api.ask("POST", api.at(CONFIG_MAPS), body, kind="application/yaml").refused(400, "BadRequest")
    assert "cannot unmarshal bool into Go struct field ConfigMap.data of type string" in status["message"]


@source(CREATE)
async def test_kind_and_version_may_be_left_out(api):
    """The path says what it is; the answer says it too."""
    made = await api.create(CONFIG_MAPS, {"metadata": {"name": "m"}})
    assert (made["kind"], made["apiVersion"]) == ("ConfigMap", "v1")
