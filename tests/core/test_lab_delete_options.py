"""What a DELETE to the lab's API server says, in its body or its query."""

import json

import pytest

from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.delete_options import delete_options
from lastcall.lab.apiserver.kinds.base import Behaviour, Options
from lastcall.lab.apiserver.request import Request
from lastcall.lab.apiserver.routes import Route
from lastcall.lab.apiserver.scheme import Resource
from lastcall.lab.apiserver.status import ApiError


def said(target="/x", body=None, raw=None):
    data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
    request = Request.of("DELETE", target, body=data, headers={"content-type": "application/json"})
    return delete_options(
        Context(request, Route("delete", Resource("apps", "v1", "things", "Thing", Behaviour()), "n", "x", ""))
    )


OPTIONS = {
    "nothing": ({}, Options()),
    "query": (
        {
            "target": "/x?gracePeriodSeconds=3&propagationPolicy=Orphan&dryRun=All&uid=u&resourceVersion=8"
            "&labelSelector=a%3Db"
        },
        Options(grace=3, propagation="Orphan", dry_run=("All",), uid="u", revision="8"),
    ),
    "old word": ({"target": "/x?orphanDependents=false"}, Options(orphan=False)),
    "only the body counts": (
        {"target": "/x?gracePeriodSeconds=3&dryRun=All", "body": {"propagationPolicy": "Foreground"}},
        Options(propagation="Foreground"),
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
        Options(grace=-1, orphan=True, dry_run=("All",), uid="u", revision="8"),
    ),
    "nulls": ({"body": {"gracePeriodSeconds": None, "preconditions": None, "dryRun": None}}, Options()),
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
    options = Options(grace=0, uid="u", propagation="Background", dry_run=("All",))
    assert options.shown() == {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/v1",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u"},
        "propagationPolicy": "Background",
        "dryRun": ["All"],
    }
    assert Options().shown() == {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
