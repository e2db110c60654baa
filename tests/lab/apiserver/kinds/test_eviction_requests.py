"""EvictionRequests and Evictions as Kubernetes 1.37 accepts them (``pkg/apis/lifecycle/validation``, ``pkg/registry/lifecycle``)."""

import copy
from random import Random

import pytest

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import PODS, dict_resource
from lastcall.errors import Conflict, InvalidInput, NotFound, RequestRefused
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.catalog.optional_resources import LIFECYCLE, read_runtime_config
from lastcall_lab.apiserver.kinds.eviction_requests import EvictionKind, EvictionRequestKind
from lastcall_lab.apiserver.kinds.pod_spec_rules import validate_pod_spec
from lastcall_lab.apiserver.server.in_process import InProcessTransport
from lastcall_lab.apiserver.values.object_meta import timestamp

UID = "5477c2ff-f59f-4eb9-a0be-e54232323faa"
WALL = 1_800_000_000.0
MINUTE = 60.0
EVICTOR = "imperative-eviction.k8s.io/evictor"
EVICTIONS = dict_resource("lifecycle.k8s.io", "v1alpha1", "evictions")
REQUESTS = dict_resource("lifecycle.k8s.io", "v1alpha1", "evictionrequests")


def stamp(seconds=0.0):
    return timestamp(WALL + seconds)


def request(**spec):
    target = {"pod": {"name": "foo.pod", "uid": UID}}
    return {
        "metadata": {"name": "bar", "namespace": "foo"},
        "spec": {"target": target, "requester": "foo.example.com/bar", "intent": "Eviction", **spec},
    }


def found(causes):
    return [(one.field, one.message.partition(": ")[2] or one.message) for one in causes]


def fields(causes):
    return [one.field for one in causes]


# -- requests ----------------------------------------------------------------------------------------------------------


def test_a_valid_request():
    assert found(EvictionRequestKind().validate(request())) == []


@pytest.mark.parametrize(
    ("spec", "field", "why"),
    [
        ({"target": {}}, "spec.target", "must specify one of: `pod`"),
        ({"target": {"pod": {"name": "", "uid": UID}}}, "spec.target.pod.name", "Required value"),
        ({"target": {"pod": {"name": "_test", "uid": UID}}}, "spec.target.pod.name", "RFC 1123 subdomain"),
        ({"target": {"pod": {"name": "bar", "uid": ""}}}, "spec.target.pod.uid", "Required value"),
        ({"target": {"pod": {"name": "bar", "uid": "invalid-uid"}}}, "spec.target.pod.uid", "8-4-4-4-12"),
        ({"target": {"pod": {"name": "bar", "uid": UID.upper()}}}, "spec.target.pod.uid", "lowercase UUID"),
        ({"requester": ""}, "spec.requester", "Required value"),
        ({"requester": "foo"}, "spec.requester", "domain-prefixed key"),
        ({"requester": "under_scores.example.com/bar"}, "spec.requester", "prefix part"),
        ({"requester": "k8s.io/key"}, "spec.requester", "domain names *.k8s.io, *.kubernetes.io are reserved"),
        (
            {"requester": "dev.kubernetes.io/key"},
            "spec.requester",
            "domain names *.k8s.io, *.kubernetes.io are reserved",
        ),
        ({"intent": ""}, "spec.intent", "Required value"),
        ({"intent": "Invalid"}, "spec.intent", 'supported values: "Eviction", "Withdrawn"'),
    ],
)
def test_an_invalid_request(spec, field, why):
    [(where, said)] = found(EvictionRequestKind().validate(request(**spec)))
    assert where == field
    assert why in said


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        ({"intent": "Withdrawn"}, []),
        ({"target": {}}, ["spec.target"]),
        ({"target": {"pod": {"name": "change", "uid": UID}}}, ["spec.target"]),
        ({"target": {"pod": {"name": "foo.pod", "uid": ""}}}, ["spec.target"]),
        ({"requester": "foo.example.com/baz"}, ["spec.requester"]),
        ({"intent": ""}, ["spec.intent"]),
        ({"intent": "Invalid"}, ["spec.intent"]),
    ],
)
def test_what_may_change_in_a_request(spec, wrong):
    assert fields(EvictionRequestKind().validate_update(request(**spec), request())) == wrong


@pytest.mark.parametrize(
    ("before", "after", "wrong"),
    [
        ({}, {"observedGeneration": 1}, []),
        ({"observedGeneration": 1}, {"observedGeneration": 5}, []),
        ({"observedGeneration": 1}, {}, ["status.observedGeneration"]),
        ({}, {"observedGeneration": 0}, ["status.observedGeneration"]),
        ({"observedGeneration": 2}, {"observedGeneration": 1}, ["status.observedGeneration"]),
        ({}, {"conditions": [{"type": "-bad", "status": "True", "reason": "R"}]}, None),
    ],
)
def test_the_status_of_a_request(before, after, wrong):
    causes = fields(EvictionRequestKind().validate_status({"status": after}, {"status": before}))
    assert causes if wrong is None else causes == wrong


def test_conditions_of_a_request_may_go_back_and_those_of_an_eviction_may_not():
    before, after = ({"conditions": [condition("Failed", is_true)]} for is_true in (True, False))
    assert fields(EvictionRequestKind().validate_status({"status": after}, {"status": before})) == []
    [(field, why)] = found(EvictionKind(lambda: WALL).validate_status({"status": after}, {"status": before}))
    assert (field, why.rpartition(": ")[2]) == ("status.conditions", "Failed condition status cannot be reverted")


# -- evictions ---------------------------------------------------------------------------------------------------------


def condition(kind, is_true=True):
    return {
        "type": kind,
        "status": "True" if is_true else "False",
        "reason": f"{kind}Reason",
        "lastTransitionTime": stamp(),
        "message": "",
    }


def name(number):
    return f"responder.example.com/bar{number}"


def status(*states, start=(), heartbeat=(), completion=(), expected=(), conditions=(), **more):
    """One responder for each state; times are seconds from now by the number of the responder."""
    times = {
        "startTime": dict(start),
        "heartbeatTime": dict(heartbeat),
        "completionTime": dict(completion),
        "expectedCompletionTime": dict(expected),
    }
    return {
        "observedGeneration": 1,
        "conditions": [condition(one) for one in conditions],
        "targetResponders": [
            {"name": name(number), "priority": 5000 - number, "state": state} for number, state in enumerate(states)
        ],
        "responders": [
            {"name": name(number), **{key: stamp(said[number]) for key, said in times.items() if number in said}}
            for number, _ in enumerate(states)
        ],
        **more,
    }


def judge(before, after):
    """What is wrong with the change; the order of the lists makes no difference."""
    kind, random = EvictionKind(lambda: WALL), Random(1)
    causes = found(kind.validate_status({"status": after}, {"status": before}))
    before, after = copy.deepcopy([before, after])
    for one in (before, after):
        random.shuffle(one.get("responders", []))
        random.shuffle(one.get("targetResponders", []))
    again = found(kind.validate_status({"status": after}, {"status": before}))
    assert [field for field, _ in again] == [field for field, _ in causes]
    return causes


A, C, N, D, X = "Active", "Completed", "Inactive", "Canceled", "Interrupted"
EMPTY = status()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (EMPTY, status(A, N, N, start={0: 0})),
        (EMPTY, status(A, *[N] * 10, start={0: 0})),
        (EMPTY, status(N, N, N, conditions=["Failed"])),
        (EMPTY, status(N, N, N, conditions=["TargetEvicted"])),
        (status(A, N, start={0: 0}), status(A, N, start={0: 0}, heartbeat={0: 5}, expected={0: 600})),
        (
            status(A, N, start={0: -1200}, heartbeat={0: -60}),
            status(A, N, start={0: -1200}, heartbeat={0: 0}),
        ),
        (status(A, N, start={0: -300}), status(A, N, start={0: -300}, completion={0: 0})),
        (
            status(A, N, start={0: -300}, completion={0: -3}),
            status(C, A, start={0: -300, 1: 0}, completion={0: -3}),
        ),
        (
            status(C, A, start={0: -300, 1: -60}, completion={0: -60}),
            status(C, A, start={0: -300, 1: -60}, completion={0: -60, 1: 0}),
        ),
        (
            status(C, A, start={0: -300, 1: -60}, completion={0: -60, 1: 0}),
            status(C, C, start={0: -300, 1: -60}, completion={0: -60, 1: 0}),
        ),
        (status(A, N, start={0: -65}), status(D, N, start={0: -65}, conditions=["Failed"])),
        (status(A, N, start={0: -65}), status(X, N, start={0: -65}, conditions=["TargetEvicted"])),
        (
            status(C, A, start={0: -99, 1: -65}, completion={0: -65}),
            status(C, D, start={0: -99, 1: -65}, completion={0: -65}, conditions=["Failed"]),
        ),
        (status(A, start={0: -19 * MINUTE - 32}), status(X, start={0: -19 * MINUTE - 32})),
        (
            status(A, start={0: -3600}, heartbeat={0: -20 * MINUTE}),
            status(X, start={0: -3600}, heartbeat={0: -20 * MINUTE}),
        ),
        (status(A, N, start={0: -60}), status(A, N, start={0: -60})),
        (status(C, C, start={0: -9, 1: -8}, completion={0: -7, 1: -6}),) * 2,
        (EMPTY, status(A, N, start={0: -29})),
        (EMPTY, status(A, N, start={0: 27})),
        (status(A, start={0: -60}), status(A, start={0: -60}, expected={0: -27})),
        (status(A, start={0: -60}), status(A, start={0: -60}, completion={0: 27})),
    ],
)
def test_turns_that_are_accepted(before, after):
    assert judge(before, after) == []


ACTIVE, MUST = "status.targetResponders[{}].state", "must be one of: "


@pytest.mark.parametrize(
    ("before", "after", "wrong"),
    [
        # the lists
        (status(A, N, start={0: 0}), status(A, start={0: 0}), {"status.targetResponders": "the same length"}),
        (
            EMPTY,
            status(A, start={0: 0}, responders=[]),
            {
                "status.targetResponders[0]": "has to be tracked in status.responders first",
                "status.responders": "must be the same length as status.targetResponders",
            },
        ),
        (
            EMPTY,
            status(A, *[N] * 11, start={0: 0}),
            {"status.targetResponders": "at most 11", "status.responders": "at most 11"},
        ),
        # who is next
        (EMPTY, status(N, N), {ACTIVE.format(0): f"{MUST}Active, because this responder is next in line"}),
        (EMPTY, status(C, N), {ACTIVE.format(0): f"{MUST}Active, because this responder is next in line"}),
        (
            EMPTY,
            status(A, N, start={0: 0}, conditions=["Failed"]),
            {ACTIVE.format(0): f"{MUST}Inactive, because the eviction request has finished processing"},
        ),
        (
            status(A, N, start={0: 0}),
            status(A, A, start={0: 0, 1: 0}),
            {ACTIVE.format(1): f"{MUST}Inactive, because the previously active has not finished processing"},
        ),
        (
            status(A, N, start={0: 0}, completion={0: 0}),
            status(C, N, start={0: 0}, completion={0: 0}),
            {ACTIVE.format(1): f"{MUST}Active, because this responder is next in line"},
        ),
        (
            status(A, N, start={0: 0}, completion={0: 0}),
            status(N, A, start={0: 0, 1: 0}, completion={0: 0}),
            {ACTIVE.format(0): "because this responder must reach a final state"},
        ),
        (
            status(C, A, start={0: -9, 1: -8}, completion={0: -8}),
            status(A, A, start={0: -9, 1: -8}, completion={0: -8}),
            {ACTIVE.format(0): f"{MUST}Completed, because final state is immutable"},
        ),
        (
            status(C, A, start={0: -9, 1: -8}, completion={0: -8, 1: 0}),
            status(C, A, start={0: -9, 1: -8}, completion={0: -8, 1: 0}, conditions=["TargetEvicted"]),
            {ACTIVE.format(1): f"{MUST}Canceled, Completed, Interrupted, because the eviction request has finished"},
        ),
        (
            status(N, N),
            status(N, A, start={1: 0}),
            {ACTIVE.format(1): f"{MUST}Inactive, because the previously active has not finished processing"},
        ),
        # nobody is passed over in his time
        (
            status(A, start={0: -19 * MINUTE - 29}),
            status(X, start={0: -19 * MINUTE - 29}),
            {ACTIVE.format(0): "must stay Active because the responder is in progress"},
        ),
        (
            status(A, start={0: -3600}, heartbeat={0: -19 * MINUTE - 29}),
            status(D, start={0: -3600}, heartbeat={0: -19 * MINUTE - 29}),
            {ACTIVE.format(0): "must stay Active because the responder is in progress"},
        ),
        (
            status(A, start={0: -3600}, heartbeat={0: -20 * MINUTE}),
            status(C, start={0: -3600}, heartbeat={0: -20 * MINUTE}),
            {ACTIVE.format(0): "cannot become Completed because the responder didn't report"},
        ),
        # what they say
        (
            status(A, N, start={0: 0}),
            status(A, N, start={0: 0}, heartbeat={1: 0}),
            {"status.responders[1]": "immutable"},
        ),
        (EMPTY, status(A, N), {"status.responders[0].startTime": "is required for an active responder"}),
        (EMPTY, status(A, start={0: -31}), {"status.responders[0].startTime": "must be set to the present time"}),
        (EMPTY, status(A, start={0: 31}), {"status.responders[0].startTime": "must be set to the present time"}),
        (status(A, start={0: -9}), status(A, start={0: -8}), {"status.responders[0].startTime": "immutable"}),
        (
            status(A, start={0: 0}, heartbeat={0: 0}),
            status(A, start={0: 0}),
            {"status.responders[0].heartbeatTime": "is required once set"},
        ),
        (
            status(A, start={0: -20}, heartbeat={0: 0}),
            status(A, start={0: -20}, heartbeat={0: -2}),
            {"status.responders[0].heartbeatTime": "cannot be decreased"},
        ),
        (
            status(A, start={0: 0}),
            status(A, start={0: 0}, heartbeat={0: -2}),
            {"status.responders[0].heartbeatTime": "must occur after status.responders[0].startTime"},
        ),
        (
            status(A, start={0: -1200}, heartbeat={0: -1100}),
            status(A, start={0: -1200}, heartbeat={0: 31}),
            {"status.responders[0].heartbeatTime": "must be set to the present time"},
        ),
        (
            status(A, start={0: -32}),
            status(A, start={0: -32}, expected={0: -31}),
            {"status.responders[0].expectedCompletionTime": "cannot be set to the past time"},
        ),
        (
            status(A, start={0: -32}),
            status(A, start={0: -32}, expected={0: 10 * 365 * 86400 + 1}),
            {"status.responders[0].expectedCompletionTime": "must complete within 10 years"},
        ),
        (
            status(A, start={0: -60}),
            status(A, start={0: -60}, completion={0: -31}),
            {"status.responders[0].completionTime": "must be set to the present time"},
        ),
        (
            status(A, start={0: -60}, completion={0: -9}),
            status(A, start={0: -60}, completion={0: -8}),
            {"status.responders[0].completionTime": "immutable"},
        ),
    ],
)
def test_turns_that_are_refused(before, after, wrong):
    causes = dict(judge(before, after))
    assert set(causes) == set(wrong)
    for field, why in wrong.items():
        assert why in causes[field]


@pytest.mark.parametrize(
    ("responder", "priority", "why"),
    [
        (EVICTOR, 100, ""),
        (EVICTOR, 101, "core k8s responder is expected to have priority: 100"),
        ("foo.example.com/bar", 999, "priorities 0-999 are reserved for responders with *.k8s.io suffix"),
        ("foo.example.com/bar", 100_001, "must be less than or equal to 100000"),
        ("foo.example.com/bar", None, "Required value"),
    ],
)
def test_the_priorities_of_responders(responder, priority, why):
    after = {
        "targetResponders": [{"name": responder, "priority": priority, "state": A}],
        "responders": [{"name": responder, "startTime": stamp()}],
    }
    causes = found(EvictionKind(lambda: WALL).validate_status({"status": after}, {"status": {}}))
    assert [(field, why in said) for field, said in causes] == (
        [("status.targetResponders[0].priority", True)] if why else []
    )


def test_requesters_have_names_intents_and_a_limit():
    kind = EvictionKind(lambda: WALL)
    wrong = {"requesters": [{"name": "a.b/c", "intent": "X"}, {"name": "a.b/c", "intent": "Eviction"}, {"name": ""}]}
    assert fields(kind.validate_status({"status": wrong}, {"status": {}})) == [
        "status.requesters[1]",
        "status.requesters[0].intent",
        "status.requesters[2].name",
        "status.requesters[2].intent",
    ]
    many = {"requesters": [{"name": f"a.b/c{number}", "intent": "Eviction"} for number in range(101)]}
    assert fields(kind.validate_status({"status": many}, {"status": {}})) == ["status.requesters"]


# -- pods --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("responders", "wrong"),
    [
        ([("foo.example.com/bar", 1000)], []),
        ([("foo.example.com/test", 7500), ("bar.example.com/baz", 7500)], []),
        ([(f"foo.example.com/x{number}", 1000 + number) for number in range(11)], [""]),
        ([("a.b/c", 1000), ("d.e/f", 1000), ("a.b/c", 2000)], ["[2]"]),
        ([("", 5000)], ["[0].name"]),
        ([("invalid", 5000)], ["[0].name"]),
        ([("k8s.io/key", 5000)], ["[0].name"]),
        ([("dev.kubernetes.io/key", 0)], ["[0].name", "[0].priority"]),
        ([("a.b/c", None)], ["[0].priority"]),
        ([("a.b/c", -1)], ["[0].priority"]),
        ([("a.b/c", 100_001)], ["[0].priority"]),
        ([("a.b/c", 999)], ["[0].priority"]),
    ],
)
def test_the_responders_of_a_pod(responders, wrong):
    said = [{"name": name, "priority": priority} for name, priority in responders]
    assert pod_faults(evictionResponders=said) == [f"spec.evictionResponders{one}" for one in wrong]


def test_a_pod_of_a_group_has_no_responders():
    said = [{"name": "a.b/c", "priority": 1000}]
    assert pod_faults(evictionResponders=said, schedulingGroup={"podGroupName": "blue"}) == ["spec.schedulingGroup"]


def pod_faults(**spec):
    container = {
        "name": "a",
        "image": "b",
        "imagePullPolicy": "Always",
        "terminationMessagePath": "/x",
        "terminationMessagePolicy": "File",
    }
    whole = {"containers": [container], "restartPolicy": "Always", "dnsPolicy": "Default", **spec}
    return fields(validate_pod_spec(whole, "spec", is_pod=True))


# -- served on request -------------------------------------------------------------------------------------------------


def with_client(story, *, optional):
    async def main():
        server = ApiServer(virtual.VirtualClock(), Random(1), optional=optional)
        client = Client(InProcessTransport(server))
        account = dict_resource("", "v1", "serviceaccounts")
        await client.create(account, {"metadata": {"name": "default"}}, namespace="default")
        await story(client)

    virtual.run(main())


def test_without_being_asked_for_it_is_not_there_and_pods_have_no_such_field():
    async def story(client):
        with pytest.raises(NotFound):
            await client.list(REQUESTS)
        assert "evictionResponders" not in (await client.create(PODS, bare_pod(), namespace="default"))["spec"]

    with_client(story, optional=())


def bare_pod():
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {
            "containers": [{"name": "a", "image": "b"}],
            "evictionResponders": [{"name": "lastcall.dev/guard", "priority": 10001}],
        },
    }


def test_the_status_belongs_to_its_subresource_and_a_write_needs_a_revision():
    async def story(client):
        pod = await client.create(PODS, bare_pod(), namespace="default")
        assert pod["spec"]["evictionResponders"] == [{"name": "lastcall.dev/guard", "priority": 10001}]
        target = {"pod": {"name": "p", "uid": pod["metadata"]["uid"]}}
        body = {"metadata": {"name": "e"}, "spec": {"target": target}, "status": {"observedGeneration": 7}}
        made = await client.create(EVICTIONS, body, namespace="default")
        assert (made["status"], made["metadata"]["generation"]) == ({}, 1)
        labelled = {"metadata": {"labels": {"a": "b"}}, "status": {"observedGeneration": 1}}
        made = await client.patch(EVICTIONS, "e", labelled, namespace="default", subresource="status")
        assert made["status"] == {"observedGeneration": 1}
        assert "labels" not in made["metadata"]
        made = await client.patch(EVICTIONS, "e", labelled, namespace="default")
        assert made["metadata"]["labels"] == {"a": "b"}
        other = {**made, "spec": {"target": {"pod": {"name": "q", "uid": UID}}}}
        with pytest.raises(RequestRefused, match="field is immutable"):
            await client.update(EVICTIONS, "e", other, namespace="default")
        unrevised = {**made, "metadata": {**made["metadata"], "resourceVersion": ""}}
        with pytest.raises((Conflict, RequestRefused)):
            await client.update(EVICTIONS, "e", unrevised, namespace="default")

    with_client(story, optional=[LIFECYCLE])


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("", []),
        ("lifecycle.k8s.io/v1alpha1=true", [LIFECYCLE]),
        ("lifecycle.k8s.io/v1alpha1", [LIFECYCLE]),
        ("lifecycle.k8s.io/v1alpha1=false", []),
    ],
)
def test_how_it_is_asked_for(text, versions):
    assert read_runtime_config(text) == versions


@pytest.mark.parametrize("text", ["api/all=true", "lifecycle.k8s.io/v1alpha1=yes", "batch/v1"])
def test_what_the_lab_cannot_switch(text):
    with pytest.raises(InvalidInput, match="--runtime-config"):
        read_runtime_config(text)
