"""The policies of ``lastcall manifests pod-policies``, and the guard's webhook: what they make of new pods."""

import pytest
import pytest_asyncio
from support.conformance.objects import pod
from support.conformance.settle_webhook import SettleWebhook

from lastcall.adapters.kube.resources import NAMESPACES, PODS
from lastcall.manifests.pod_policies import priority_policy, settle_policy
from lastcall.names import MIRROR_ANNOTATION, PRIORITY_ANNOTATION, SETTLE_SECONDS, SLEEP_ADDED

SLEEP = {"preStop": {"sleep": {"seconds": 7}}}
OWN = {"preStop": {"exec": {"command": ["/bin/true"]}}}
OWNERS = {
    "ReplicaSet": "apps/v1",
    "Job": "batch/v1",
}


@pytest.fixture(params=["policies", "webhook"])
def prepare(request, api, policies, hooks):
    """What puts them in force, once more each time: seven seconds where nothing else is said."""

    async def put_policies():
        for spec in (settle_policy(7), priority_policy()):
            await policies.mutate(*spec["mutations"], **{key: spec[key] for key in spec if key != "mutations"})

    return put_policies if request.param == "policies" else SettleWebhook(api, hooks).put


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(api, prepare):
    """A namespace with the label, in which new pods are prepared."""
    await prepare()
    await label(api, "default")


async def label(api, value):
    await api.ask(
        "PATCH",
        NAMESPACES.path(name=api.namespace),
        {"metadata": {"labels": {SETTLE_SECONDS: value}}},
        kind="application/merge-patch+json",
    )


def container(name="c", *, ports=True, **more):
    return {
        "name": name,
        "image": "registry.invalid/nothing:1",
        **({"ports": [{"containerPort": 80}]} if ports else {}),
        **more,
    }


def owned(kind="ReplicaSet", **annotations):
    owner = {"apiVersion": OWNERS[kind], "kind": kind, "name": "o", "uid": "u", "controller": True}
    return {"ownerReferences": [owner], **({"annotations": annotations} if annotations else {})}


async def made(api, containers=None, metadata=None, **spec):
    """The pod as the server stores it."""
    body = pod(metadata=owned() if metadata is None else metadata, containers=containers or [container()], **spec)
    return await api.create(PODS, body)


def hooks(made, field="containers"):
    return {one["name"]: one.get("lifecycle") for one in made["spec"].get(field, ())}


def unchanged(made, grace=30):
    return (
        all(hook in (None, OWN) for hook in hooks(made).values())
        and made["spec"]["terminationGracePeriodSeconds"] == grace
        and SLEEP_ADDED not in made["metadata"].get("annotations", {})
    )


async def test_a_pod_that_serves_gets_the_sleep_and_the_time_for_it(api, namespace):
    """Also its containers without ports, on which those with ports may depend."""
    got = await made(api, [container(), container("helper", ports=False)])
    assert hooks(got) == {"c": SLEEP, "helper": SLEEP}
    assert got["spec"]["terminationGracePeriodSeconds"] == 37
    assert got["metadata"]["annotations"][SLEEP_ADDED] == "7"


async def test_a_namespace_without_the_label(api, prepare):
    await prepare()
    got = await made(api)
    assert unchanged(got)
    assert PRIORITY_ANNOTATION not in got["metadata"].get("annotations", {})


@pytest.mark.parametrize(
    ("label_value", "annotation", "seconds"),
    [("default", None, 7), ("3", None, 3), ("3", "5", 5), ("3", "0", 0), ("0", None, 0), ("0", "4", 4), ("3", "x", 7)],
)
async def test_who_says_how_long(api, namespace, label_value, annotation, seconds):
    """The pod's annotation, else the namespace's label, else the policy: by what comes first and is a number."""
    await label(api, label_value)
    got = await made(api, metadata=owned(**({SETTLE_SECONDS: annotation} if annotation else {})))
    assert got["spec"]["terminationGracePeriodSeconds"] == 30 + seconds
    assert hooks(got) == {"c": {"preStop": {"sleep": {"seconds": seconds}}} if seconds else None}


async def test_a_hook_of_its_own_stays(api, namespace):
    got = await made(api, [container(lifecycle=OWN), container("second")])
    assert hooks(got) == {"c": OWN, "second": SLEEP}
    got = await api.create(
        PODS,
        pod("q", metadata=owned(), containers=[container(lifecycle=OWN), container("helper", ports=False)]),
    )
    assert unchanged(got), "whoever wrote the hooks of all that serve has thought of it"


async def test_another_part_of_a_lifecycle_stays(api, namespace):
    start = {"postStart": {"exec": {"command": ["/bin/true"]}}}
    got = await made(api, [container(lifecycle=start), container("empty", lifecycle={})])
    assert hooks(got) == {"c": {**start, **SLEEP}, "empty": SLEEP}


async def test_sidecars_with_ports_count_and_init_containers_do_not(api, namespace):
    sidecar = container("proxy", restartPolicy="Always")
    first = container("first", ports=False)
    got = await made(api, [container(ports=False)], initContainers=[first, sidecar])
    assert hooks(got) == {"c": SLEEP}
    assert hooks(got, "initContainers") == {"first": None, "proxy": SLEEP}


@pytest.mark.parametrize(
    ("metadata", "spec", "grace"),
    [
        (None, {"containers": [container(ports=False)]}, 30),
        (owned("Job"), {"restartPolicy": "Never"}, 30),
        (None, {"terminationGracePeriodSeconds": 0}, 0),
        ({}, {"terminationGracePeriodSeconds": 7}, 7),
    ],
    ids=["no ports", "of a Job", "ends at once", "no controller and no time for the sleep"],
)
async def test_pods_that_stay_as_they_are(api, namespace, metadata, spec, grace):
    assert unchanged(await made(api, metadata=metadata, **spec), grace)


async def test_a_mirror_pod_stays_as_it_is(api, namespace):
    """It would no longer be what the kubelet runs."""
    got = await made(api, metadata={"annotations": {MIRROR_ANNOTATION: "x"}}, node="nowhere")
    assert unchanged(got)
    assert PRIORITY_ANNOTATION not in got["metadata"]["annotations"]


async def test_the_grace_period_of_a_pod_without_controller_stays(api, namespace):
    """``kubectl apply`` of a manifest that has it would try to set it back, which is forbidden."""
    got = await made(api, metadata={}, terminationGracePeriodSeconds=20)
    assert hooks(got) == {"c": SLEEP}
    assert got["spec"]["terminationGracePeriodSeconds"] == 20


async def test_an_update_changes_nothing(api, namespace):
    """Containers cannot be changed, so a pod from before the policy keeps what it has."""
    await label(api, "0")
    await made(api)
    await label(api, "9")
    got = await api.patch(PODS, "p", {"metadata": {"labels": {"a": "b"}}})
    assert unchanged(got)


async def test_the_sleep_is_added_once(api, namespace, prepare):
    """The second stands for a webhook that adds a sidecar later: the first runs again, the time stays."""
    await prepare()
    got = await made(api)
    assert (hooks(got), got["spec"]["terminationGracePeriodSeconds"]) == ({"c": SLEEP}, 37)


async def test_a_sidecar_that_was_added_later_raises_the_time_no_further(api, namespace):
    """As it is shown when the policy or webhook runs again."""
    got = await made(api, metadata=owned(**{SLEEP_ADDED: "7"}), terminationGracePeriodSeconds=37)
    assert (hooks(got), got["spec"]["terminationGracePeriodSeconds"]) == ({"c": SLEEP}, 37)


async def test_the_priority_is_stamped(api, namespace):
    """Mutating policies run after the plugin that has found the number for the class."""
    assert (await made(api))["metadata"]["annotations"][PRIORITY_ANNOTATION] == "0"


async def test_a_class_gives_the_number(api, namespace):
    class_ = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 4711}
    name = f"pc-{api.namespace}"
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    await api.ask("POST", path, {**class_, "metadata": {"name": name}})
    api.doomed.append(f"{path}/{name}")

    async def known():
        body = pod(metadata=owned(), containers=[container()], priorityClassName=name)
        return (await api.create(PODS, body, dryRun="All").reply()).status == 201

    await api.until(known)
    got = await made(api, priorityClassName=name)
    assert got["metadata"]["annotations"][PRIORITY_ANNOTATION] == "4711"


async def test_an_annotation_that_is_there_stays(api, namespace):
    got = await made(api, metadata=owned(**{PRIORITY_ANNOTATION: "9"}))
    assert got["metadata"]["annotations"][PRIORITY_ANNOTATION] == "9"
