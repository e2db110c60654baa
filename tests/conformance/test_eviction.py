"""Eviction: what budgets allow, and what is answered when they do not."""

import pytest
from support.conformance.api_client import causes, unique
from support.conformance.objects import NOWHERE, budget, meta, pod, running

from lastcall.adapters.kube.resources import BUDGETS, PODS

source = pytest.mark.source
EVICTION = "pkg/registry/core/pod/storage/eviction.go"
DOC = "https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/"
UNHEALTHY = "https://github.com/kubernetes/enhancements/tree/master/keps/sig-apps/3017-pod-healthy-policy-for-pdb"
KIND = {"apiVersion": "policy/v1", "kind": "Eviction"}


def evict(api, name, options=None, **query):
    """Asks for the eviction of a pod."""
    body = {**KIND, **meta(name, namespace=api.namespace), **({"deleteOptions": options} if options else {})}
    return api.ask("POST", api.at(PODS, name, "eviction"), body, **query)


@source(DOC)
async def test_without_a_budget_eviction_is_deletion(api):
    """201 with a Status of success; the pod terminates with its grace."""
    await running(api, "p")
    reply = await evict(api, "p").reply()
    assert (reply.status, reply.body["kind"], reply.body["status"]) == (201, "Status", "Success")
    assert (await api.get(PODS, "p"))["metadata"]["deletionGracePeriodSeconds"] == 30


@source(EVICTION)
async def test_an_evicted_pod_says_why_it_goes(api):
    """The condition DisruptionTarget (KEP-3329)."""
    await running(api, "p")
    await evict(api, "p")
    conditions = {one["type"]: one for one in (await api.get(PODS, "p"))["status"]["conditions"]}
    assert conditions["DisruptionTarget"]["reason"] == "EvictionByEvictionAPI"
    assert conditions["DisruptionTarget"]["status"] == "True"


@source(EVICTION)
async def test_a_budget_allows_so_many(api):
    """The first is evicted, the second refused with 429 and the cause DisruptionBudget."""
    await running(api, "p")
    await running(api, "q")
    await budget(api, "b", healthy=2, desired=1, expected=2)
    await evict(api, "p")
    status = await evict(api, "q").refused(429, "TooManyRequests")
    assert status["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert status["details"]["causes"][0]["reason"] == "DisruptionBudget"
    assert "deletionTimestamp" not in (await api.get(PODS, "q"))["metadata"]


@source(EVICTION)
async def test_an_eviction_spends_the_budget(api):
    """disruptionsAllowed sinks, and the pod is named in disruptedPods."""
    await running(api, "p")
    await running(api, "q")
    await budget(api, "b", healthy=2, desired=1, expected=2)
    await evict(api, "p")
    status = (await api.get(BUDGETS, "b"))["status"]
    assert status["disruptionsAllowed"] == 0
    assert set(status.get("disruptedPods", {})) <= {"p"}


@source(EVICTION)
async def test_the_message_tells_the_numbers(api):
    """How many healthy pods the budget needs and has."""
    await running(api, "p")
    await budget(api, "b", healthy=1, desired=1, expected=1)
    status = await evict(api, "p").refused(429, "TooManyRequests")
    assert causes(status) == [("DisruptionBudget", None)]
    (cause,) = status["details"]["causes"]
    assert cause["message"] == "The disruption budget b needs 1 healthy pods and has 1 currently"


@source(EVICTION)
async def test_two_budgets_of_one_pod(api):
    """500: which one to spend cannot be decided."""
    await running(api, "p")
    for name in ("b", "c"):
        await budget(api, name, healthy=1, desired=0, expected=1)
    status = await evict(api, "p").refused(500)
    assert "more than one PodDisruptionBudget" in status["message"]


@source(EVICTION)
async def test_a_budget_of_others_does_not_matter(api):
    """Its selector must match."""
    await running(api, "p", {"app": "a"})
    await running(api, "q", {"app": "b"})
    await budget(api, "b", healthy=1, desired=1, expected=1, labels={"app": "b"})
    await evict(api, "p")


@source(EVICTION)
@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
async def test_a_pod_that_does_not_run_is_no_loss(api, phase):
    """It passes a budget that allows nothing."""
    await running(api, "q")
    await running(api, "p", ready=False, phase=phase)
    await budget(api, "b", healthy=1, desired=1, expected=2 if phase == "Pending" else 1)
    await evict(api, "p")


@source(EVICTION)
async def test_a_pod_that_goes_already_is_no_loss(api):
    """Its eviction succeeds, and spends nothing."""
    await running(api, "p")
    await running(api, "q")
    await api.delete(PODS, "p")
    await budget(api, "b", healthy=1, desired=1, expected=1)
    await evict(api, "p")
    assert "disruptedPods" not in (await api.get(BUDGETS, "b"))["status"]


@source(UNHEALTHY)
async def test_an_unready_pod_of_a_healthy_application(api):
    """It may go, since enough others are healthy."""
    await running(api, "p", ready=False)
    await running(api, "q")
    await budget(api, "b", healthy=1, desired=1, expected=2)
    await evict(api, "p")


@source(UNHEALTHY)
async def test_an_unready_pod_of_an_application_in_need(api):
    """It may not go: it may become healthy."""
    await running(api, "p", ready=False)
    await budget(api, "b", healthy=0, desired=1, expected=1)
    await evict(api, "p").refused(429, "TooManyRequests")


@source(UNHEALTHY)
async def test_unready_pods_that_may_always_go(api):
    """unhealthyPodEvictionPolicy AlwaysAllow."""
    await running(api, "p", ready=False)
    await budget(api, "b", healthy=0, desired=1, expected=1, unhealthyPodEvictionPolicy="AlwaysAllow")
    await evict(api, "p")


@source(EVICTION)
@pytest.mark.parametrize("way", ["query", "body"])
async def test_a_dry_run_evicts_nothing(api, way):
    """And spends nothing."""
    await running(api, "p")
    await running(api, "q")
    await budget(api, "b", healthy=2, desired=1, expected=2)
    await (evict(api, "p", dryRun="All") if way == "query" else evict(api, "p", {"dryRun": ["All"]}))
    assert "deletionTimestamp" not in (await api.get(PODS, "p"))["metadata"]
    assert (await api.get(BUDGETS, "b"))["status"]["disruptionsAllowed"] == 1


@source(EVICTION)
async def test_an_eviction_of_another_pod_of_that_name(api):
    """A uid that is not the pod's: 409."""
    await running(api, "p")
    options = {"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}}
    await evict(api, "p", options).refused(409, "Conflict")
    assert "deletionTimestamp" not in (await api.get(PODS, "p"))["metadata"]


@source(EVICTION)
async def test_a_precondition_for_an_unready_pod_that_may_go(api):
    """A uid that is not the pod's is answered like a budget that is not up to date: the client asks again later."""
    await running(api, "p", ready=False)
    await running(api, "q")
    await budget(api, "b", healthy=1, desired=1, expected=2)
    options = {"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}}
    status = await evict(api, "p", options).refused(429, "TooManyRequests")
    assert status["details"]["retryAfterSeconds"] == 10
    (cause,) = status["details"]["causes"]
    assert cause["message"] == "The disruption budget b is still being processed by the server."
    assert "deletionTimestamp" not in (await api.get(PODS, "p"))["metadata"]


@source(EVICTION)
async def test_a_resource_version_for_an_unready_pod_that_may_go(api):
    """The server's own precondition, the version that it has judged, replaces the client's."""
    await running(api, "p", ready=False)
    await running(api, "q")
    await budget(api, "b", healthy=1, desired=1, expected=2)
    await evict(api, "p", {"preconditions": {"resourceVersion": "1"}})
    assert "deletionTimestamp" in (await api.get(PODS, "p"))["metadata"]


@source(EVICTION)
async def test_an_empty_resource_version_is_no_precondition_of_an_eviction(api):
    """The pod goes; the dry run of the same request is refused, for it does not write the condition first."""
    await running(api, "p")
    options = {"preconditions": {"resourceVersion": ""}}
    await evict(api, "p", {**options, "dryRun": ["All"]}).refused(409, "Conflict")
    await evict(api, "p", options)
    assert "deletionTimestamp" in (await api.get(PODS, "p"))["metadata"]


@source(EVICTION)
async def test_an_eviction_does_not_ignore_unreadable_objects(api):
    """The option of deletions that does so is refused, and the pod stays."""
    await running(api, "p")
    status = await evict(api, "p", {"ignoreStoreReadErrorWithClusterBreakingPotential": True}).refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", "deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential")]
    assert "deletionTimestamp" not in (await api.get(PODS, "p"))["metadata"]


@source(EVICTION)
async def test_the_grace_of_an_eviction(api):
    """gracePeriodSeconds of its deleteOptions."""
    await running(api, "p")
    await evict(api, "p", {"gracePeriodSeconds": 3})
    assert (await api.get(PODS, "p"))["metadata"]["deletionGracePeriodSeconds"] == 3


@source(EVICTION)
async def test_an_eviction_of_nobody(api):
    """404."""
    await evict(api, "p").refused(404, "NotFound")


@source(EVICTION)
async def test_an_eviction_under_another_name(api):
    """The name in the body is the pod's: 400."""
    await running(api, "p")
    body = {**KIND, **meta("q")}
    status = await api.ask("POST", api.at(PODS, "p", "eviction"), body).refused(400, "BadRequest")
    assert "name in URL does not match name in Eviction object" in status["message"]


@source("pkg/registry/core/rest/storage_core.go")
async def test_evictions_are_only_made(api):
    """There is nothing to read."""
    await api.create(PODS, pod())
    await api.get(PODS, "p", "eviction").refused(405, "MethodNotAllowed")


@source(EVICTION)
async def test_a_pod_on_no_node_is_evicted_at_once(api):
    """As it would be deleted."""
    await api.create(PODS, pod())
    await evict(api, "p")
    assert await api.gone(PODS, "p")


@source("pkg/apis/policy/validation/validation.go")
async def test_a_budget_says_one_of_two_numbers(api):
    """minAvailable and maxUnavailable exclude each other."""
    selector = {"matchLabels": {"a": "b"}}
    body = {**meta("b"), "spec": {"selector": selector, "minAvailable": 1, "maxUnavailable": 1}}
    status = await api.create(BUDGETS, body).refused(422, "Invalid")
    assert "minAvailable and maxUnavailable cannot be both set" in status["message"]


@source("pkg/apis/policy/validation/validation.go")
@pytest.mark.parametrize(("value", "code"), [("50%", 201), ("150%", 422), (-1, 422), ("half", 422)])
async def test_numbers_of_budgets(api, value, code):
    """A number that is not negative, or a percentage up to 100."""
    body = {**meta(unique("b")), "spec": {"selector": {"matchLabels": {"a": "b"}}, "minAvailable": value}}
    assert (await api.create(BUDGETS, body).reply()).status == code


@source("https://kubernetes.io/docs/tasks/run-application/configure-pdb/")
async def test_an_empty_selector_selects_all_pods(api):
    """policy/v1: {} is everything in the namespace, no selector is nothing."""
    await api.create(PODS, pod("p", node=NOWHERE, metadata={"labels": {"app": "x"}}))
    await api.patch(PODS, "p", {"status": {"phase": "Running"}}, sub="status")
    await api.create(BUDGETS, {**meta("none"), "spec": {"minAvailable": 1}})
    await evict(api, "p", {"dryRun": ["All"]})
    await api.create(BUDGETS, {**meta("all"), "spec": {"selector": {}, "minAvailable": 1}})
    status = await evict(api, "p", {"dryRun": ["All"]}).refused(429, "TooManyRequests")
    assert status["message"]
