"""Deletions on the lab's API server: what is answered, who is asked, and what watches see."""

from functools import partial

from support.lab.virtual_server import Asked, on_server

from lastcall_lab import virtual
from lastcall_lab.apiserver.admission.chain import AdmissionPlugin
from lastcall_lab.apiserver.catalog.built_in_resources import built_in_resources
from lastcall_lab.apiserver.resources.kind_behaviour import DependentsPolicy
from lastcall_lab.apiserver.values.api_errors import ApiError

MAPS = "/api/v1/namespaces/default/configmaps"


class Recorder(AdmissionPlugin):
    """Remembers what was asked; refuses from the ``limit``-th on."""

    def __init__(self, limit=1000):
        self.asked, self.limit = [], limit

    async def validate(self, attributes):
        if attributes.operation == "DELETE":
            old = attributes.old["metadata"]
            grace = attributes.options.get("gracePeriodSeconds")
            self.asked.append((attributes.name, old["name"], old.get("deletionGracePeriodSeconds"), grace))
            if len(self.asked) >= self.limit:
                raise ApiError(403, "Forbidden", "no more")


def config_map(name, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


@on_server(Recorder)
async def test_a_status_or_the_object(server):
    await server.good("POST", MAPS, config_map("x"))
    code, answer = await server.ask("DELETE", f"{MAPS}/x?dryRun=All")
    assert (code, answer["kind"], answer["details"]["kind"]) == (200, "Status", "configmaps")
    code, answer = await server.ask("DELETE", f"{MAPS}/x", {"orphanDependents": True})
    assert (code, answer["kind"], answer["metadata"]["finalizers"]) == (200, "ConfigMap", ["orphan"])
    assert "code" not in answer


@on_server(Recorder)
async def test_accepted_is_said_to_who_uses_the_old_word(server):
    await server.good("POST", MAPS, config_map("x", finalizers=["example.com/hold"]))
    code, answer = await server.ask("DELETE", f"{MAPS}/x", {"orphanDependents": False})
    assert (code, answer["metadata"]["finalizers"]) == (202, ["example.com/hold"])


@on_server(Recorder)
async def test_what_a_watch_sees_of_a_finalizer(server):
    made = await server.good("POST", MAPS, config_map("x", finalizers=["example.com/hold"]))
    marked_ = await server.good("DELETE", f"{MAPS}/x")
    again = await server.good("DELETE", f"{MAPS}/x")
    assert again["metadata"] == marked_["metadata"], "the same mark is written once"
    last = await server.good("PATCH", f"{MAPS}/x", {"metadata": {"finalizers": None}})
    assert "finalizers" not in last["metadata"]
    assert last["metadata"]["resourceVersion"] == marked_["metadata"]["resourceVersion"]
    seen = await server.events(f"{MAPS}?watch=1&resourceVersion={made['metadata']['resourceVersion']}", 2)
    assert [one["type"] for one in seen] == ["MODIFIED", "DELETED"]
    assert [one["object"]["metadata"]["finalizers"] for one in seen] == [["example.com/hold"]] * 2
    assert int(seen[1]["object"]["metadata"]["resourceVersion"]) > int(marked_["metadata"]["resourceVersion"])
    assert (await server.ask("GET", f"{MAPS}/x"))[0] == 404


@on_server(Recorder)
async def test_who_is_asked_and_how_often(server):
    await server.good("POST", MAPS, config_map("x", finalizers=["example.com/hold"]))
    await server.good("POST", MAPS, config_map("y"))
    await server.good("DELETE", f"{MAPS}/x")
    await server.good("DELETE", f"{MAPS}/y")
    assert server.first[0].asked == [("x", "x", None, None), ("y", "y", None, None)]


@on_server(partial(Recorder, limit=2))
async def test_a_collection_until_somebody_refuses(server):
    for name in ("a", "b", "c", "d"):
        await server.good("POST", MAPS, config_map(name, labels={"app": name}))
    code, answer = await server.ask("DELETE", f"{MAPS}?labelSelector=app!=a")
    assert (code, answer["message"]) == (403, "no more")
    assert [one[:2] for one in server.first[0].asked] == [("", "b"), ("", "c")]
    left = await server.good("GET", MAPS)
    assert [one["metadata"]["name"] for one in left["items"]] == ["a", "c", "d"]


@on_server(Recorder)
async def test_a_page_of_a_collection(server):
    for name in ("a", "b", "c"):
        await server.good("POST", MAPS, config_map(name))
    gone = await server.good("DELETE", f"{MAPS}?limit=2")
    assert [one["metadata"]["name"] for one in gone["items"]] == ["a", "b"]
    assert gone["metadata"]["remainingItemCount"] == 1
    left = await server.good("GET", MAPS)
    assert [one["metadata"]["name"] for one in left["items"]] == ["c"]


@on_server(Recorder)
async def test_what_cannot_be_deleted_all_at_once(server):
    assert (await server.ask("DELETE", "/api/v1/namespaces"))[0] == 405
    assert (await server.ask("DELETE", "/api/v1/configmaps"))[0] == 405


class Rival(AdmissionPlugin):
    """Somebody else is faster: ``act`` happens while the ``at``-th question is asked."""

    def __init__(self, act, at=1):
        self._act, self._at, self.asked = act, at, 0
        self.server = None

    async def validate(self, attributes):
        if attributes.operation == "DELETE":
            self.asked += 1
            if self.asked == self._at:
                await self._act(self.server)


def rivalled(act, at=1):
    server = Asked(virtual.VirtualClock(), Rival(act, at))
    server.first[0].server = server
    return server


PODS = "/api/v1/namespaces/default/pods"


async def pod(server):
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False}
    return await server.good("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})


async def forced(server):
    """A pod of node n1 that is deleted by force, and what watches see of it until then."""
    await server.good("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    made = (await pod(server))["metadata"]
    gone = await server.good("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
    assert gone["metadata"]["uid"] == made["uid"]
    return made


def test_who_removes_what_is_marked_does_it_for_all():
    async def remove(server):
        await server.good("DELETE", f"{PODS}/p?gracePeriodSeconds=0")

    async def main():
        server = rivalled(remove, at=2)
        made = await forced(server)
        seen = await server.events(f"{PODS}?watch=1&resourceVersion={made['resourceVersion']}&timeoutSeconds=1", 3)
        assert [one["type"] for one in seen] == ["MODIFIED", "DELETED"]

    virtual.run(main())


def test_another_of_the_same_name_is_left_alone():
    async def replace(server):
        await server.good("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
        await pod(server)

    async def main():
        server = rivalled(replace, at=2)
        made = await forced(server)
        left = await server.good("GET", f"{PODS}/p")
        assert left["metadata"]["uid"] != made["uid"]
        assert "deletionTimestamp" not in left["metadata"]

    virtual.run(main())


def test_who_changes_what_is_marked_removes_it():
    answers = []

    async def change(server):
        answers.append(await server.good("PATCH", f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}}))
        assert (await server.ask("GET", f"{PODS}/p"))[0] == 404

    async def main():
        server = rivalled(change, at=2)
        await forced(server)
        assert (server.first[0].asked, answers[0]["metadata"]["labels"]) == (2, {"a": "b"})

    virtual.run(main())


def test_a_change_meanwhile_is_no_obstacle():
    async def change(server):
        await server.good("PATCH", f"{MAPS}/x", {"data": {"a": "b"}})

    async def main():
        server = rivalled(change)
        await server.good("POST", MAPS, config_map("x"))
        assert (await server.good("DELETE", f"{MAPS}/x"))["status"] == "Success"

    virtual.run(main())


def test_a_change_meanwhile_breaks_a_precondition():
    async def change(server):
        await server.good("PATCH", f"{MAPS}/x", {"data": {"a": "b"}})

    async def main():
        server = rivalled(change)
        made = await server.good("POST", MAPS, config_map("x"))
        wanted = {"preconditions": {"resourceVersion": made["metadata"]["resourceVersion"]}}
        assert (await server.ask("DELETE", f"{MAPS}/x", wanted))[0] == 409
        assert (await server.ask("GET", f"{MAPS}/x"))[0] == 200

    virtual.run(main())


def test_a_collection_goes_on_over_what_is_gone():
    async def delete(server):
        await server.good("DELETE", f"{MAPS}/b")

    async def main():
        server = rivalled(delete)
        for name in ("a", "b", "c"):
            await server.good("POST", MAPS, config_map(name))
        gone = await server.good("DELETE", MAPS)
        assert len(gone["items"]) == 3
        assert (await server.good("GET", MAPS))["items"] == []

    virtual.run(main())


@on_server(Recorder)
async def test_a_namespace_from_its_beginning_to_its_end(server):
    names = [one["metadata"]["name"] for one in (await server.good("GET", "/api/v1/namespaces"))["items"]]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]
    made = await server.good("POST", "/api/v1/namespaces", {"metadata": {"generateName": "n-"}, "spec": {"x": 1}})
    name = made["metadata"]["name"]
    path = f"/api/v1/namespaces/{name}"
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}
    assert (made["spec"], made["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
    kept = await server.good("PATCH", path, {"metadata": {"labels": None}, "spec": {"finalizers": None}})
    assert (kept["metadata"]["labels"], kept["spec"]) == (made["metadata"]["labels"], made["spec"])
    assert (await server.good("DELETE", f"{path}?dryRun=All"))["status"] == {"phase": "Terminating"}
    assert (await server.good("GET", path))["status"] == {"phase": "Active"}
    ending = await server.good("DELETE", path)
    assert (ending["kind"], ending["status"]) == ("Namespace", {"phase": "Terminating"})
    assert "deletionGracePeriodSeconds" not in ending["metadata"]
    assert (await server.good("DELETE", path))["metadata"] == ending["metadata"]
    assert (await server.ask("GET", f"{path}/finalize"))[0] == 405
    assert (await server.ask("PUT", f"{path}/finalize", {**ending, "spec": {"finalizers": ["word"]}}))[0] == 422
    last = await server.good("PUT", f"{path}/finalize", {**ending, "spec": {"finalizers": []}})
    assert (last["kind"], last["spec"]) == ("Namespace", {})
    assert (await server.ask("GET", path))[0] == 404


@on_server(Recorder)
async def test_the_phase_of_a_namespace_says_whether_it_is_being_deleted(server):
    path = "/api/v1/namespaces/default/status"
    code, answer = await server.ask("PATCH", path, {"status": {"phase": "Terminating"}})
    assert (code, answer["details"]["causes"][0]["field"]) == (422, "status.Phase")


ANSWERED_BY_THE_OBJECT = {
    *("persistentvolumeclaims", "persistentvolumes", "pods", "serviceaccounts", "services"),
    *("csidrivers.storage.k8s.io", "csinodes.storage.k8s.io", "storageclasses.storage.k8s.io"),
    "volumeattachments.storage.k8s.io",
}
"""By the responses to DELETE in Kubernetes' OpenAPI document."""


def test_which_kinds_are_answered_by_the_object():
    found = {one.qualified_name for one in built_in_resources() if not one.behaviour.status_after_delete}
    assert found == ANSWERED_BY_THE_OBJECT


def test_which_kinds_leave_what_they_own():
    """``DefaultGarbageCollectionPolicy`` of each kind's strategy."""
    ways = {one.qualified_name: one.behaviour.dependents for one in built_in_resources()}
    assert {name for name, way in ways.items() if way is DependentsPolicy.ORPHANED} == {"jobs.batch"}
    assert {name for name, way in ways.items() if way is DependentsPolicy.NONE} == {"events", "events.events.k8s.io"}
