"""Evictions on the lab's API server: what is answered, what is written, and that no allowance is spent twice."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lab.virtual_server import Asked, on_server

from lastcall_lab import virtual
from lastcall_lab.apiserver.admission.chain import AdmissionPlugin
from lastcall_lab.apiserver.storage.store import StorageKey

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
READY = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]


class Slow(AdmissionPlugin):
    """Lets others run while an eviction is admitted, each for another while."""

    def __init__(self, clock, delays=()):
        self._clock, self._delays, self.asked = clock, list(delays), []

    async def validate(self, attributes):
        if attributes.operation == "CREATE" and attributes.subresource == "eviction":
            self.asked.append(attributes)
            await self._clock.sleep(self._delays.pop() if self._delays else 1)
        elif attributes.operation == "DELETE":
            self.asked.append(attributes)


class Cluster(Asked):
    """With pods and budgets as a node and the disruption controller write them."""

    @classmethod
    async def begun(cls, clock, delays=()):
        """A new one, in which there can be pods."""
        cluster = cls(clock, Slow(clock, delays))
        (cluster.slow,) = cluster.first
        await cluster.good("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        return cluster

    async def pod(self, name, *, phase="Running", conditions=READY, **metadata):
        spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False}
        await self.good("POST", PODS, {"metadata": {"name": name, "labels": {"app": "a"}, **metadata}, "spec": spec})
        await self.good("PATCH", f"{PODS}/{name}/status", {"status": {"phase": phase, "conditions": conditions}})

    async def budget(self, name="b", *, allowed=0, desired=1, healthy=1, **status):
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
        await self.good("POST", BUDGETS, {"metadata": {"name": name}, "spec": spec})
        counted = {"disruptionsAllowed": allowed, "desiredHealthy": desired, "currentHealthy": healthy}
        body = {"status": {"observedGeneration": 1, "expectedPods": 3, **counted, **status}}
        await self.good("PATCH", f"{BUDGETS}/{name}/status", body)

    async def evict(self, name, query="", **options):
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        return await self.ask("POST", f"{PODS}/{name}/eviction{query}", {**body, "deleteOptions": options})

    async def of(self, path):
        return await self.good("GET", path)


def on_cluster(test):
    """Runs a test against a new server in virtual time."""

    def run():
        async def main():
            await test(await Cluster.begun(virtual.VirtualClock()))

        virtual.run(main())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@on_cluster
async def test_what_is_written(cluster):
    await cluster.pod("p")
    await cluster.budget(allowed=1)
    assert await cluster.evict("p", gracePeriodSeconds=7) == (
        201,
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201},
    )
    pod = await cluster.of(f"{PODS}/p")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 7
    mark = pod["status"]["conditions"][-1]
    assert (mark["type"], mark["status"], mark["reason"]) == ("DisruptionTarget", "True", "EvictionByEvictionAPI")
    status = (await cluster.of(f"{BUDGETS}/b"))["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["p"])
    said = status["conditions"][0]
    assert (said["type"], said["status"], said["reason"]) == ("DisruptionAllowed", "False", "InsufficientPods")
    assert [one.operation for one in cluster.slow.asked] == ["CREATE"], "who guards deletions is not asked"


@on_cluster
async def test_a_condition_that_was_there_changes(cluster):
    before = {"type": "DisruptionAllowed", "reason": "SufficientPods", "message": "2 may go", "observedGeneration": 1}
    stood = {**before, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    await cluster.pod("p", conditions=[*READY, {"type": "DisruptionTarget", "status": "True", "reason": "Preemption"}])
    await cluster.budget(allowed=1, conditions=[stood])
    assert (await cluster.evict("p"))[0] == 201
    (said,) = (await cluster.of(f"{BUDGETS}/b"))["status"]["conditions"]
    assert (said["status"], said["reason"], said["message"]) == ("False", "InsufficientPods", "")
    assert said["lastTransitionTime"] != "2026-01-01T00:00:00Z"
    target = (await cluster.of(f"{PODS}/p"))["status"]["conditions"][-1]
    assert target["reason"] == "EvictionByEvictionAPI"


@on_cluster
async def test_a_refusal_changes_nothing(cluster):
    await cluster.pod("p")
    await cluster.budget()
    before = await cluster.of(f"{PODS}/p"), await cluster.of(f"{BUDGETS}/b")
    code, answer = await cluster.evict("p")
    assert (code, answer["reason"]) == (429, "TooManyRequests")
    assert answer["details"] == {
        "causes": [
            {
                "reason": "DisruptionBudget",
                "message": "The disruption budget b needs 1 healthy pods and has 1 currently",
            }
        ]
    }
    assert (await cluster.of(f"{PODS}/p"), await cluster.of(f"{BUDGETS}/b")) == before


@on_cluster
async def test_too_many_are_remembered(cluster):
    await cluster.pod("p")
    await cluster.budget(allowed=1, disruptedPods={f"p{n}": "2026-01-01T00:00:00Z" for n in range(2001)})
    code, answer = await cluster.evict("p")
    assert (code, answer["reason"]) == (403, "Forbidden")
    assert answer["message"] == (
        'poddisruptionbudget.policy "b" is forbidden: DisruptedPods map too big - too many evictions not confirmed by'
        " PDB controller"
    )


@on_cluster
async def test_ask_again_in_ten_seconds(cluster):
    await cluster.pod("p")
    await cluster.budget(allowed=1)
    await cluster.good("PATCH", f"{BUDGETS}/b", {"spec": {"minAvailable": 2}})
    code, answer = await cluster.evict("p")
    assert (code, answer["details"]["retryAfterSeconds"]) == (429, 10)


@on_cluster
async def test_several_budgets(cluster):
    await cluster.pod("p")
    await cluster.budget("b1", allowed=1)
    await cluster.budget("b2", allowed=1)
    code, answer = await cluster.evict("p")
    assert (code, answer["code"], "reason" in answer) == (500, 500, False)
    await cluster.good("PATCH", f"{PODS}/p/status", {"status": {"phase": "Failed"}})
    assert (await cluster.evict("p"))[0] == 201
    assert (await cluster.ask("GET", f"{PODS}/p"))[0] == 404


@pytest.mark.parametrize(
    ("query", "options", "code"),
    [
        ("?dryRun=All", {}, 201),
        ("", {"dryRun": ["All"]}, 201),
        ("?dryRun=All", {"dryRun": ["All"]}, 201),
        ("?dryRun=All", {"dryRun": []}, 201),
        ("?dryRun=All", {"dryRun": ["All", "All"]}, 500),
        ("?dryRun=Some", {}, 422),
        ("", {"dryRun": ["Some"]}, 422),
    ],
)
def test_a_dry_run_is_asked_for_in_either_place(query, options, code):
    @on_cluster
    async def test(cluster):
        await cluster.pod("p")
        await cluster.budget(allowed=1)
        before = await cluster.of(f"{PODS}/p"), await cluster.of(f"{BUDGETS}/b")
        assert (await cluster.evict("p", query, **options))[0] == code
        assert (await cluster.of(f"{PODS}/p"), await cluster.of(f"{BUDGETS}/b")) == before
        assert [one.dry_run for one in cluster.slow.asked] == ([bool(query)] if code == 201 or not query else [])

    test()


@on_cluster
async def test_a_precondition_holds_for_the_pod_as_the_client_saw_it(cluster):
    await cluster.pod("p")
    seen = (await cluster.of(f"{PODS}/p"))["metadata"]["resourceVersion"]
    assert (await cluster.evict("p", preconditions={"resourceVersion": str(int(seen) - 1)}))[0] == 409
    assert "deletionTimestamp" not in (await cluster.of(f"{PODS}/p"))["metadata"]
    assert (await cluster.evict("p", preconditions={"resourceVersion": seen}))[0] == 201
    assert "deletionTimestamp" in (await cluster.of(f"{PODS}/p"))["metadata"]


@on_server()
async def test_what_is_no_eviction_of_this_pod(server):
    path = f"{PODS}/p/eviction"
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    assert (await server.ask("POST", path, eviction))[0] == 404
    code, answer = await server.ask("POST", path, {**eviction, "metadata": {"name": "q"}})
    assert (code, answer["message"]) == (400, "name in URL does not match name in Eviction object")
    assert (await server.ask("POST", path, {**eviction, "apiVersion": "policy/v2"}))[0] == 400
    assert (await server.ask("GET", path))[0] == 405


@on_cluster
async def test_what_happens_during_admission_counts(cluster):
    await cluster.pod("p")
    await cluster.budget(allowed=1)

    async def meanwhile():
        await asyncio.sleep(0.5)
        await cluster.good("PATCH", f"{BUDGETS}/b/status", {"status": {"disruptionsAllowed": 0}})

    (code, _), _ = await asyncio.gather(cluster.evict("p"), meanwhile())
    assert code == 429


@given(
    allowed=st.integers(0, 4),
    pods=st.integers(1, 6),
    delays=st.lists(st.sampled_from([0, 0.5, 1]), min_size=6, max_size=6),
)
@settings(max_examples=25, deadline=None)
def test_no_allowance_is_spent_twice(allowed, pods, delays):
    """However many ask at once, and in whatever order they are admitted."""

    async def main():
        cluster = await Cluster.begun(virtual.VirtualClock(), delays)
        names = [f"p{number}" for number in range(pods)]
        for name in names:
            await cluster.pod(name)
        await cluster.budget(allowed=allowed, desired=1, healthy=pods)
        answers = await asyncio.gather(*(cluster.evict(name) for name in names))
        codes = [code for code, _ in answers]
        status = (await cluster.of(f"{BUDGETS}/b"))["status"]
        gone = [name for name in names if terminating(cluster, name)]
        assert codes.count(201) == min(allowed, pods)
        assert codes.count(429) == pods - min(allowed, pods)
        assert status["disruptionsAllowed"] == allowed - len(gone)
        assert sorted(status.get("disruptedPods", {})) == gone

    virtual.run(main())


def terminating(cluster, name):
    stored = cluster.store.get(StorageKey("pods", "default", name))
    return "deletionTimestamp" in stored.to_object()["metadata"]
