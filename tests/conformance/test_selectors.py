"""Selectors of labels and of fields."""

import pytest
from support.conformance.objects import NOWHERE, meta, pod, running

from lastcall.adapters.kube.resources import EVENTS, LEASES, NAMESPACES, PODS

source = pytest.mark.source
LABELS = "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/"
PARSER = "staging/src/k8s.io/apimachinery/pkg/labels/selector.go"
FIELDS = "https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/"
FIELD_PARSER = "staging/src/k8s.io/apimachinery/pkg/fields/selector.go"
PODS_FIELDS = "pkg/registry/core/pod/strategy.go"
OBJECTS = {
    "a": {"env": "dev", "n": "1"},
    "b": {"env": "prod", "n": "5"},
    "c": {"n": "10"},
    "d": {"env": "", "n": "x"},
    "e": {},
}


@source(LABELS)
@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("env=dev", "a"),
        ("env==dev", "a"),
        ("env!=dev", "bcde"),
        ("env", "abd"),
        ("!env", "ce"),
        ("env=", "d"),
        ("env in (dev,prod)", "ab"),
        ("env in (dev, )", "ad"),
        ("env notin (dev,prod)", "cde"),
        ("env,env!=dev", "bd"),
        ("env in (dev,prod),n=5", "b"),
        ("n>3", "bc"),
        ("n<5", "a"),
        ("n > 1 , n < 10", "b"),
        ("env = dev", "a"),
        ("env=dev,env=prod", ""),
        ("", "abcde"),
        ("x=y", ""),
    ],
)
async def test_labels_select(api, selector, names):
    """Equality, sets, existence and numbers; what has no such label is unequal to all values."""
    for name, labels in OBJECTS.items():
        await api.create(LEASES, meta(name, labels=labels))
    assert await api.names(LEASES, labelSelector=selector) == list(names)


@source(PARSER)
@pytest.mark.parametrize(
    "selector", ["env=dev,", "env in", "env in (", "a b", "env=a=b", "!env=a", "n>x", "=a", "-a", "env=a b", "env in a"]
)
async def test_a_selector_that_is_none(api, selector):
    """400, and what could not be parsed."""
    reply = await api.list(LEASES, labelSelector=selector).reply()
    assert reply.refused(400, "BadRequest")["message"]


@source(PARSER)
async def test_a_selector_with_a_bad_value(api):
    """Values are those of labels."""
    reply = await api.list(LEASES, labelSelector="a=" + "x" * 64).reply()
    assert "must be no more than 63" in reply.refused(400, "BadRequest")["message"]


@source(FIELDS)
@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("metadata.name=p", "p"),
        ("metadata.name!=p", "qr"),
        ("spec.nodeName=", "r"),
        (f"spec.nodeName={NOWHERE}", "pq"),
        (f"spec.nodeName!={NOWHERE}", "r"),
        ("status.phase=Running", "p"),
        ("status.phase!=Running,spec.nodeName!=", "q"),
        ("spec.restartPolicy=Always", "pqr"),
        ("spec.schedulerName=default-scheduler", ""),
        ("spec.serviceAccountName=default", "pqr"),
        ("spec.hostNetwork=true", ""),
        ("status.podIP=", "pqr"),
        ("status.nominatedNodeName=", "pqr"),
        ("metadata.name==p", "p"),
    ],
)
async def test_fields_of_pods_select(api, selector, names):
    """What pods can be selected by."""
    await running(api, "p")
    await running(api, "q", phase="Failed")
    await api.create(PODS, pod("r"))
    assert await api.names(PODS, fieldSelector=selector) == list(names)


@source(FIELDS)
async def test_a_field_that_selects_nothing(api):
    """400: not every field can be asked for."""
    status = await api.list(PODS, fieldSelector="spec.containers=x").refused(400, "BadRequest")
    assert "field label not supported: spec.containers" in status["message"]


@source(FIELD_PARSER)
@pytest.mark.parametrize("selector", ["metadata.name", "metadata.name>a", "metadata.name in (a)"])
async def test_a_field_selector_that_is_none(api, selector):
    """400: fields know only =, == and !=."""
    status = await api.list(PODS, fieldSelector=selector).refused(400, "BadRequest")
    assert "invalid field selector" in status["message"] or "invalid selector" in status["message"]


@source("pkg/apis/core/v1/conversion.go")
async def test_namespaces_are_selected_by_phase(api):
    """Each kind has fields of its own."""
    found = await api.list(NAMESPACES, fieldSelector=f"status.phase=Active,metadata.name={api.namespace}")
    assert [item["metadata"]["name"] for item in found["items"]] == [api.namespace]


@source("pkg/registry/core/event/strategy.go")
async def test_events_are_selected_by_what_they_are_about(api):
    """As kubectl describe asks for them."""
    for name in ("a", "b"):
        about = {"kind": "Pod", "name": name, "namespace": api.namespace, "uid": name}
        await api.create(EVENTS, {**meta(name), "involvedObject": about, "reason": f"R{name}", "type": "Normal"})
    for selector in ("involvedObject.name=a", "involvedObject.uid=a", "reason=Ra"):
        assert await api.names(EVENTS, fieldSelector=selector) == ["a"]
    assert await api.names(EVENTS, fieldSelector="involvedObject.kind=Pod,type=Normal") == ["a", "b"]


@source(PODS_FIELDS)
async def test_labels_and_fields_together(api):
    """Both must hold."""
    await running(api, "p", {"app": "a"})
    await running(api, "q", {"app": "b"})
    assert await api.names(PODS, fieldSelector="status.phase=Running", labelSelector="app=b") == ["q"]


@source(FIELD_PARSER)
async def test_values_of_fields_are_escaped(api):
    r"""\, \= and \\ stand for themselves."""
    about = {"kind": "Pod", "name": "a", "namespace": api.namespace, "fieldPath": "x"}
    await api.create(EVENTS, {**meta("e"), "involvedObject": about, "reason": "a,b=c"})
    assert await api.names(EVENTS, fieldSelector=r"reason=a\,b\=c") == ["e"]
