"""What a review is read as, and reviews and states that cannot be read: one clear error, and no answer."""

import json

import pytest
from support.guard.reviews import deletion, eviction, policy, state

from lastcall.errors import InvalidInput
from lastcall.model.admission import parse_review
from lastcall.model.guard_state_file import read_guard_state


def without(review, *path):
    place = review
    for step in path[:-1]:
        place = place[step]
    del place[path[-1]]
    return review


def with_value(review, value, *path):
    place = review
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return review


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"null", "not an AdmissionReview"),
        (b"[]", "not an AdmissionReview"),
        (b'"AdmissionReview"', "not an AdmissionReview"),
        (b'{"kind":"Pod","apiVersion":"v1"}', "not an AdmissionReview"),
        (b'{"kind":"AdmissionReview"}', "not an AdmissionReview"),
        (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v2"}', "not an AdmissionReview"),
        (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}', "request: null: must be a mapping"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_review_is_said(data, said):
    with pytest.raises(InvalidInput, match=said):
        parse_review(data, "standard input")


@pytest.mark.parametrize(
    ("review", "said"),
    [
        (without(deletion(), "request"), "request: null: must be a mapping"),
        (without(deletion(), "request", "uid"), "request.uid: missing: must be given"),
        (with_value(deletion(), "", "request", "uid"), 'request.uid: "": must not be empty'),
        (with_value(deletion(), 7, "request", "uid"), "request.uid: 7: must be text"),
        (without(deletion(), "request", "operation"), "request.operation: missing"),
        (without(deletion(), "request", "resource"), "request.resource: missing"),
        (with_value(deletion(), [], "request", "userInfo"), "request.userInfo: .*: must be a mapping"),
        (with_value(deletion(), "pod", "request", "oldObject"), "request.oldObject: .*must be a mapping"),
        (with_value(deletion(), {}, "request", "oldObject"), "request.oldObject.metadata: missing"),
        (with_value(eviction(), "x", "request", "object"), "request.object: .*must be a mapping"),
        (with_value(eviction(), 3, "request", "object", "metadata", "name"), "request.object.metadata.name: 3"),
        (with_value(deletion(), "yes", "request", "dryRun"), "request.dryRun: .*true or false"),
    ],
)
def test_what_an_answer_needs_is_named_with_field_value_and_rule(review, said):
    with pytest.raises(InvalidInput, match=said):
        parse_review(json.dumps(review).encode(), "standard input")


def test_a_null_in_a_pod_counts_as_absent():
    review = with_value(deletion(), None, "request", "oldObject", "metadata", "generation")
    assert read(review) == read(deletion())


def test_a_review_about_something_else_is_no_removal_whatever_its_object_is():
    review = with_value(deletion(), {"metadata": {"name": 7}}, "request", "oldObject")
    assert read(with_value(review, "services", "request", "resource", "resource")).removal is None


def read(review):
    return parse_review(json.dumps(review).encode(), "x")


def test_a_review_of_five_mebibytes_is_read():
    review = deletion()
    review["request"]["oldObject"]["metadata"]["annotations"] = {"big": "x" * 5 * 2**20}
    assert parse_review(json.dumps(review).encode(), "x").removal.name == "db-0"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"provider": {}}, "spec.provider: .*length >= 1"),
        ({"provider": {"redis": {}, "etcd": {}}}, "spec.provider: .*length <= 1"),
        ({"maxUnavailable": 0}, "spec.maxUnavailable: 0: must be a number from 1, or a percentage from 1%"),
        ({"maxUnavailable": "0%"}, 'spec.maxUnavailable: "0%"'),
        ({"maxUnavailable": "some"}, 'spec.maxUnavailable: "some"'),
        ({"holdLimit": "soon"}, 'spec.holdLimit: "soon"'),
        ({"onLimit": "Force"}, 'spec.onLimit: "Force": must be Hold or Allow'),
        (
            {"selector": {"matchExpressions": [{"key": "app", "operator": "In"}]}},
            "at least one value must be given for In",
        ),
    ],
)
def test_a_policy_in_a_file_keeps_its_rules(spec, said):
    with pytest.raises(InvalidInput, match=said):
        read_guard_state(json.dumps(state(policy(**spec))).encode(), "state.json")


def test_a_policy_needs_a_provider():
    broken = policy()
    del broken["spec"]["provider"]
    with pytest.raises(InvalidInput, match=r"GuardPolicy shop/db\): spec.provider: missing"):
        read_guard_state(json.dumps(state(broken)).encode(), "state.json")


def test_other_kinds_are_owners_as_far_as_they_can_be_read():
    odd = {
        "apiVersion": "example.com/v1",
        "kind": "Odd",
        "metadata": {"name": "odd", "uid": "u"},
        "spec": {"replicas": "many"},
    }
    found = read_guard_state(json.dumps(state(odd)).encode(), "state.json")
    assert found.owners["u"].spec.replicas is None


@pytest.mark.parametrize(
    ("review", "dry"),
    [
        (deletion(), False),
        (deletion(dryRun=True), True),
        (deletion(options={"dryRun": ["All"]}), True),
        (deletion(options={"dryRun": []}), False),
        (eviction(), False),
        (eviction(dryRun=True), True),
        (eviction(options={"dryRun": ["All"]}), True),
        (eviction(dryRun=None), False),
    ],
)
def test_a_dry_run_is_known_in_each_of_its_places(review, dry):
    assert parse_review(json.dumps(review).encode(), "x").removal.is_dry_run is dry
