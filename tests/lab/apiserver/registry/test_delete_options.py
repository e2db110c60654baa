"""What a DELETE to the lab's API server says, in its body or its query."""

import json

import pytest

from lastcall_lab.apiserver.registry.delete_options import read_delete_options
from lastcall_lab.apiserver.resources.kind_behaviour import DeleteOptions, KindBehaviour
from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.routing.routes import Route
from lastcall_lab.apiserver.values.api_errors import ApiError
from lastcall_lab.apiserver.values.request import Request


def said(target="/x", body=None, raw=None):
    data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
    request = Request.of("DELETE", target, body=data, headers={"content-type": "application/json"})
    return read_delete_options(
        RequestContext(
            request, Route("delete", ServedResource("apps", "v1", "things", "Thing", KindBehaviour()), "n", "x", "")
        )
    )


OPTIONS = {
    "nothing": ({}, DeleteOptions()),
    "query": (
        {
            "target": "/x?gracePeriodSeconds=3&propagationPolicy=Orphan&dryRun=All&uid=u&resourceVersion=8"
            "&labelSelector=a%3Db"
        },
        DeleteOptions(grace=3, propagation="Orphan", dry_run=("All",), uid="u", revision="8"),
    ),
    "old word": ({"target": "/x?orphanDependents=false"}, DeleteOptions(orphan=False)),
    "only the body counts": (
        {"target": "/x?gracePeriodSeconds=3&dryRun=All", "body": {"propagationPolicy": "Foreground"}},
        DeleteOptions(propagation="Foreground"),
    ),
    "all in the body": (
        {
            "body": {
                "kind": "DeleteOptions",
                "apiVersion": "anything/v7",
                "gracePeriodSeconds": -1,
                "orphanDependents": True,
                "dryRun": ["All"],
                "preconditions": {"uid": "u", "resourceVersion": "8"},
                "unknown": {"field": 1},
            }
        },
        DeleteOptions(grace=-1, orphan=True, dry_run=("All",), uid="u", revision="8"),
    ),
    "nulls": ({"body": {"gracePeriodSeconds": None, "preconditions": None, "dryRun": None}}, DeleteOptions()),
}


@pytest.mark.parametrize(("arguments", "options"), OPTIONS.values(), ids=OPTIONS)
def test_options(arguments, options):
    assert said(**arguments) == options


UNUSABLE = {
    "another kind": (
        {"body": {"kind": "Pod"}},
        400,
        'no kind "Pod" is registered for version "meta.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"',
    ),
    "a number in words": (
        {"target": "/x?gracePeriodSeconds=soon"},
        400,
        'strconv.ParseInt: parsing "soon": invalid syntax',
    ),
    "a wrong type": (
        {"body": {"gracePeriodSeconds": "5"}},
        400,
        "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
    ),
    "a boolean is no number": (
        {"body": {"gracePeriodSeconds": True}},
        400,
        "json: cannot unmarshal bool into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
    ),
    "a wrong type within": (
        {"body": {"preconditions": {"uid": 5}}},
        400,
        "json: cannot unmarshal number into Go struct field DeleteOptions.preconditions.uid of type types.UID",
    ),
    "no list of words": (
        {"body": {"dryRun": [1]}},
        400,
        "json: cannot unmarshal number into Go struct field DeleteOptions.dryRun of type string",
    ),
    "policy": (
        {"body": {"propagationPolicy": "Sideways"}},
        422,
        (
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways":'
            ' supported values: "Foreground", "Background", "Orphan", "nil"'
        ),
    ),
    "dry run": (
        {"target": "/x?dryRun=Some"},
        422,
        'DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
    ),
    "both words": (
        {"body": {"propagationPolicy": "Orphan", "orphanDependents": True}},
        422,
        (
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan":'
            " orphanDependents and deletionPropagation cannot be both set"
        ),
    ),
}


@pytest.mark.parametrize(("arguments", "code", "message"), UNUSABLE.values(), ids=UNUSABLE)
def test_options_that_cannot_be(arguments, code, message):
    with pytest.raises(ApiError) as caught:
        said(**arguments)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_options_as_webhooks_see_them():
    options = DeleteOptions(grace=0, uid="u", propagation="Background", dry_run=("All",))
    assert options.to_object() == {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/v1",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u"},
        "propagationPolicy": "Background",
        "dryRun": ["All"],
    }
    assert DeleteOptions().to_object() == {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
