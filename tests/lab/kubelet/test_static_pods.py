"""Static pods on the lab's kubelet, in virtual time: what their manifests begin, and what their mirror pods do not end."""

import pytest
from support.lab.virtual_node import on_node

from lastcall.adapters.kube.resources import PODS
from lastcall.names import CONFIG_SOURCE, MIRROR_ANNOTATION
from lastcall_lab.fakes.actor_runtime import ContainerScript
from lastcall_lab.kubelet.node.manifest_files import ManifestFiles
from lastcall_lab.kubelet.spec.static_pods import static_pod

NAME = "dns-n1"
SLOW = ContainerScript(after_term=10)


def manifest(name="dns", **spec):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "i"}], **spec}}


class Manifests:
    """Those of ``documents``."""

    def __init__(self, *documents):
        self.documents = list(documents)

    async def read(self):
        return [static_pod(one, node="n1", source="/m") for one in self.documents]


def with_manifests(*documents, behave=None):
    """A node whose manifests are ``node.manifests``."""

    def decorate(test):
        manifests = Manifests(*documents)

        async def run(node):
            node.manifests = manifests
            await test(node)

        run.__name__ = test.__name__
        return on_node(behave, manifests=manifests)(run)

    return decorate


def mirrored(node, name=NAME):
    """The uid of the static pod behind a mirror pod."""
    return node.pod(name)["metadata"]["annotations"][MIRROR_ANNOTATION]


def starts(node, uid):
    return [one.what for one in node.runtime.deliveries if one.uid == uid].count("start")


async def running(node, name=NAME):
    await node.until(lambda: node.pod(name) and node.ready(name), 30)
    return mirrored(node, name)


@with_manifests(manifest(priorityClassName="system-node-critical"))
async def test_it_runs_and_has_a_mirror_pod(node):
    uid = await running(node)
    pod = node.pod(NAME)
    assert pod["metadata"]["uid"] != uid
    assert pod["metadata"]["annotations"][CONFIG_SOURCE] == "file"
    [owner] = pod["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Node", "n1", True)
    assert pod["spec"]["priority"] == 2000001000
    assert [live.pod.metadata.uid for live in await node.runtime.list_pods()] == [uid], (
        "the runtime knows it by its own uid"
    )


@with_manifests(manifest())
async def test_the_runtime_knows_where_a_pod_comes_from(node):
    """By that an agent knows whether the uid of the sandbox is also that of the pod's object."""
    await running(node)
    await node.started("web")
    found = {live.pod.metadata.name: live.pod.metadata.annotations for live in await node.runtime.list_pods()}
    assert {name: annotations[CONFIG_SOURCE] for name, annotations in found.items()} == {NAME: "file", "web": "api"}
    assert not any(MIRROR_ANNOTATION in annotations for annotations in found.values())


@with_manifests(manifest())
async def test_who_deletes_the_mirror_pod_ends_no_container(node):
    uid = await running(node)
    before = node.pod(NAME)["metadata"]["uid"]
    await node.delete(NAME)
    await node.until(lambda: node.pod(NAME) and node.pod(NAME)["metadata"]["uid"] != before and node.ready(NAME), 30)
    await node.delete(NAME, grace=0)
    await running(node)
    await node.clock.sleep(30)
    assert node.ready(NAME)
    assert [one.what for one in node.runtime.deliveries if one.uid == uid] == ["start"]


@with_manifests(manifest())
async def test_a_container_that_somebody_ends_is_restarted(node):
    uid = await running(node)
    [live] = await node.runtime.list_pods()
    await node.runtime.stop_container(live.containers["main"], 1)
    await node.until(lambda: node.container(NAME)["restartCount"] == 1 and node.ready(NAME), 30)
    assert starts(node, uid) == 2


@with_manifests(manifest(), behave={"main": SLOW})
async def test_it_ends_with_its_manifest_and_its_mirror_pod_after_it(node):
    uid = await running(node)
    node.manifests.documents = []
    await node.clock.sleep(5)
    assert node.pod(NAME), "its container has not ended"
    await node.until(lambda: node.pod(NAME) is None, 30)
    assert [one.what for one in node.runtime.deliveries if one.uid == uid] == ["start", "TERM", "exit"]
    assert node.runtime.running() == []


@with_manifests(manifest(), behave={"main": SLOW})
async def test_a_changed_manifest_makes_another_pod_of_the_name_after_the_first(node):
    first = await running(node)
    node.manifests.documents = [manifest(restartPolicy="OnFailure")]
    await node.until(lambda: node.pod(NAME) and mirrored(node) != first and node.ready(NAME), 60)
    seen = [(one.uid == first, one.what) for one in node.runtime.deliveries]
    assert seen == [(True, "start"), (True, "TERM"), (True, "exit"), (False, "start")]


@with_manifests(manifest())
async def test_another_kubelet_takes_it_over(node):
    uid = await running(node)
    await node.stop()
    await node.clock.sleep(30)
    node.boot()
    await node.clock.sleep(30)
    assert node.ready(NAME)
    assert starts(node, uid) == 1


@with_manifests(manifest())
async def test_also_if_its_mirror_pod_was_deleted_meanwhile(node):
    uid = await running(node)
    await node.stop()
    await node.delete(NAME, grace=0)
    node.boot()
    await running(node)
    assert starts(node, uid) == 1
    await node.clock.sleep(30)
    assert node.ready(NAME)


@with_manifests(manifest())
async def test_what_is_left_of_it_goes_if_its_manifest_is_gone_after_a_boot(node):
    await running(node)
    await node.stop()
    node.manifests.documents = []
    node.boot()
    await node.until(lambda: node.pod(NAME) is None and node.runtime.running() == [], 30)


@with_manifests(manifest())
async def test_it_restarts_in_place_after_a_power_cut(node):
    uid = await running(node)
    before = node.pod(NAME)["metadata"]["uid"]
    node.runtime.pull_power()
    await node.stop()
    node.boot("boot-2")
    await node.until(lambda: node.container(NAME)["restartCount"] == 1 and node.ready(NAME), 30)
    assert (mirrored(node), node.pod(NAME)["metadata"]["uid"]) == (uid, before)


@with_manifests(manifest())
async def test_one_whose_mirror_pod_has_a_final_phase_begins_anew_with_the_next_kubelet(node):
    """As after a shutdown by the kubelet's own manager."""
    uid = await running(node)
    await node.stop()
    node.runtime.pull_power()
    await node.client.patch(PODS, NAME, {"status": {"phase": "Failed"}}, namespace="default", subresource="status")
    node.boot("boot-2")
    await node.until(lambda: node.pod(NAME) and node.phase(NAME) == "Running" and node.ready(NAME), 30)
    assert starts(node, uid) == 2


@with_manifests()
async def test_none_starts_while_the_node_goes_down(node):
    node.kubelet.going_down = True
    node.manifests.documents = [manifest()]
    await node.until(lambda: node.pod(NAME) and node.phase(NAME) == "Failed", 30)
    assert node.status(NAME)["reason"] == "NodeShutdown"
    await node.clock.sleep(30)
    assert node.runtime.deliveries == []
    await node.stop()
    node.boot("boot-2")
    await running(node)


@pytest.mark.parametrize("content", ["", "{", "kind: Pod\napiVersion: v1\nmetadata: {name: Not_A_Name}\nspec: {}\n"])
async def test_a_file_that_is_no_manifest_is_logged_once_and_has_no_pod(tmp_path, caplog, content):
    (tmp_path / "good").write_text('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},'
                                   '"spec": {"containers": [{"name": "main", "image": "i"}]}}')  # fmt: skip
    (tmp_path / "bad.yaml").write_text(content)
    (tmp_path / ".hidden").write_text("{")
    files = ManifestFiles(tmp_path, "N1")
    for _ in range(2):
        [pod] = await files.read()
        assert (pod["metadata"]["name"], pod["metadata"]["namespace"]) == ("a-n1", "default")
    assert [record.message for record in caplog.records if "bad.yaml" in record.message] == [caplog.records[0].message]


async def test_a_directory_that_is_not_there_has_no_manifests(tmp_path):
    assert await ManifestFiles(tmp_path / "none", "n1").read() == []
