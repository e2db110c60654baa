"""The webhook for new pods while the cluster answers late, not at all, or somebody else asks; what it decides is in
tests/cluster."""

import base64
import json

import pytest

from lastcall.errors import InvalidInput, NotPermitted, Unavailable
from lastcall.guard.controller.pod_creation_service import ANSWER_SECONDS, PodCreationService
from lastcall.model.pod_creation import PodService, PodServiceSpec, ServicePort
from lastcall.model.pods import ObjectMetadata
from lastcall.names import PRIORITY_ANNOTATION, SLEEP_ADDED
from lastcall_lab import virtual

POD = {
    "metadata": {
        "labels": {"app": "web"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "o", "controller": True}],
    },
    "spec": {"priority": 5, "containers": [{"name": "c"}]},
}
WEB = PodService(
    metadata=ObjectMetadata(name="web"), spec=PodServiceSpec(selector={"app": "web"}, ports=(ServicePort(port=80),))
)
PRIORITY = {"op": "add", "path": "/metadata/annotations", "value": {PRIORITY_ANNOTATION: "5"}}


class Surroundings:
    """Each read takes ``delay`` seconds, then raises ``error`` if there is one. ``reads`` has what was asked, in order."""

    def __init__(self, *, delay=0.0, error=None, label="9", remembered=(), services=(WEB,)):
        self._clock = virtual.VirtualClock()
        self.delay, self.error, self.label = delay, error, label
        self.remembered, self.services, self.reads = remembered, services, []

    async def _read(self, what):
        self.reads.append(what)
        await self._clock.sleep(self.delay)
        if self.error:
            raise self.error

    async def read_settle_label(self, namespace):
        await self._read(f"label of {namespace}")
        return self.label

    async def read_services(self, namespace, *, fresh):
        await self._read(f"{'new' if fresh else 'remembered'} services of {namespace}")
        return self.services if fresh else self.remembered


def review(pod=POD, **request):
    asked = {"uid": "u", "operation": "CREATE", "resource": {"version": "v1", "resource": "pods"}, "namespace": "shop"}
    whole = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": asked | {"object": pod} | request,
    }
    return json.dumps(whole).encode()


def answer(surroundings, data, **more):
    """The operations of the answer, which allows the pod in each case."""
    found = virtual.run(PodCreationService(surroundings, default=2).answer(data, **more))
    response = found["response"]
    assert (found["kind"], response["uid"], response["allowed"]) == ("AdmissionReview", "u", True)
    return json.loads(base64.b64decode(response["patch"])) if "patch" in response else []


def adds_sleep(operations):
    return any(one["path"] == "/spec/containers/0/lifecycle" for one in operations)


def test_what_is_remembered_is_enough_for_a_yes():
    around = Surroundings(remembered=(WEB,))
    assert adds_sleep(answer(around, review()))
    assert around.reads == ["label of shop", "remembered services of shop"]


def test_a_no_is_read_anew():
    around = Surroundings()
    operations = answer(around, review())
    assert around.reads[-1] == "new services of shop"
    assert operations[0]["value"] == {PRIORITY_ANNOTATION: "5", SLEEP_ADDED: "9"}
    assert adds_sleep(operations)


def test_nothing_is_read_for_a_pod_that_may_have_no_sleep():
    around = Surroundings()
    owner = [{"kind": "Job", "name": "o", "controller": True}]
    job = {**POD, "metadata": {**POD["metadata"], "ownerReferences": owner}}
    assert answer(around, review(job)) == [PRIORITY]
    assert around.reads == []


@pytest.mark.parametrize(
    "around",
    [
        Surroundings(error=Unavailable("no answer")),
        Surroundings(error=NotPermitted("may not list services")),
        Surroundings(delay=ANSWER_SECONDS + 0.1),
        Surroundings(label=None),
        Surroundings(label="0"),
    ],
    ids=["no answer", "no right", "late", "no label any more", "zero"],
)
def test_the_pod_is_created_without_the_sleep_and_its_priority_is_stamped(around):
    assert answer(around, review()) == [PRIORITY]


def test_who_does_not_come_from_the_api_server_learns_nothing():
    around = Surroundings()
    assert answer(around, review(), is_authenticated=False) == []
    assert around.reads == []


@pytest.mark.parametrize(
    "request_", [{"operation": "UPDATE"}, {"subResource": "binding"}, {"resource": {"resource": "configmaps"}}]
)
def test_what_is_no_new_pod_stays(request_):
    assert answer(Surroundings(), review(**request_)) == []


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", review({"spec": 7}), review(uid="")])
def test_what_is_no_review_is_refused(data):
    with pytest.raises(InvalidInput):
        answer(Surroundings(), data)
