"""From what the CRI lists, and from manifests, to pods."""

import pytest

from lastcall import names
from lastcall.adapters.cri import kubelet_labels
from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.cri.pod_listing import join_pods
from lastcall.adapters.cri.spec_sources import SpecSources
from lastcall.model.pods import (
    Container,
    ContainerPort,
    ExecAction,
    HTTPGetAction,
    Lifecycle,
    LifecycleHandler,
    ObjectMetadata,
    Pod,
    PodSpec,
    list_sidecars,
    pod_priority,
)

HOOK = LifecycleHandler(exec=ExecAction(command=("leave", "--now")))


def made(**spec):
    return Pod(metadata=ObjectMetadata(name="web-0", namespace="shop", uid="u-1"), spec=PodSpec(**spec))


def listed(pod, *, running=None, annotations=None, labels=None, sandbox="s-1", **marked):
    """The sandbox and the containers of a pod, as the CRI lists them; ``marked`` overrides container annotations."""
    own = pod.metadata
    box = cri.PodSandbox(
        id=sandbox,
        metadata=cri.PodSandboxMetadata(name=own.name, namespace=own.namespace, uid=own.uid),
        labels={**kubelet_labels.sandbox_labels(pod), **(labels or {})},
        annotations={**kubelet_labels.sandbox_annotations(pod), **(annotations or {})},
    )
    specs = (pod.spec.init_containers or ()) + pod.spec.containers
    containers = [
        cri.Container(
            id=f"{sandbox}-{spec.name}",
            pod_sandbox_id=sandbox,
            created_at=number,
            metadata=cri.ContainerMetadata(name=spec.name),
            labels=kubelet_labels.container_labels(pod, spec),
            annotations={**kubelet_labels.container_annotations(pod, spec), **marked},
        )
        for number, spec in enumerate(specs)
        if running is None or spec.name in running
    ]
    return box, containers


def joined(box, containers, specs=None, node_name="node-1", **sources):
    known = SpecSources(manifests=specs or {}, **sources)
    live, notes = join_pods([box] if box else [], containers, sources=known, node_name=node_name)
    return live[0], notes


def test_what_was_written_is_read():
    main = Container(
        name="main", lifecycle=Lifecycle(pre_stop=HOOK), ports=(ContainerPort(name="http", container_port=80),)
    )
    pod = made(containers=(main, Container(name="log")), termination_grace_period_seconds=45)
    box, containers = listed(pod, labels={"app": "web"}, annotations={"example.com/a": "b"})
    live, notes = joined(box, containers)
    assert notes == []
    assert live.containers == {"main": "s-1-main", "log": "s-1-log"}
    assert live.sandbox == "s-1"
    assert (live.pod.key, live.pod.metadata.uid) == ("shop/web-0", "u-1")
    assert live.pod.metadata.labels == {"app": "web"}
    assert live.pod.metadata.annotations == {"example.com/a": "b", names.CONFIG_SOURCE: "file"}
    assert live.pod.spec.containers == (main, Container(name="log"))
    assert live.pod.spec.termination_grace_period_seconds == 45
    assert live.pod.metadata.deletion_grace_period_seconds is None
    assert not live.pod.is_finished


@pytest.mark.parametrize(
    ("hook", "text"),
    [
        (HOOK, '{"exec":{"command":["leave","--now"]}}'),
        (LifecycleHandler(http_get=HTTPGetAction(port="admin")), '{"httpGet":{"port":"admin","scheme":"HTTP"}}'),
        (
            LifecycleHandler(http_get=HTTPGetAction(port=80, path="/x")),
            '{"httpGet":{"port":80,"path":"/x","scheme":"HTTP"}}',
        ),
    ],
)
def test_hooks_are_written_as_the_kubelet_writes_them(hook, text):
    container = Container(name="main", lifecycle=Lifecycle(pre_stop=hook))
    assert kubelet_labels.container_annotations(made(), container)[names.CONTAINER_PRE_STOP] == text


def test_the_grace_of_a_deletion_stands_beside_the_pods_own():
    pod = made(containers=(Container(name="main"),), termination_grace_period_seconds=45)
    live, _ = joined(*listed(pod, **{names.CONTAINER_DELETION_GRACE: "5"}))
    assert live.pod.metadata.deletion_grace_period_seconds == 5
    assert live.pod.spec.termination_grace_period_seconds == 45


@pytest.mark.parametrize(
    ("key", "text", "says"),
    [
        (names.CONTAINER_PRE_STOP, "{broken", "ignored"),
        (names.CONTAINER_PRE_STOP, "", "ignored"),
        (names.CONTAINER_PRE_STOP, '"text"', "Expected `object`"),
        (names.CONTAINER_PRE_STOP, '{"exec":{"command":"not a list"}}', "$.exec.command"),
        (names.CONTAINER_PRE_STOP, '{"sleep":{"seconds":-1}}', ">= 0"),
        (names.CONTAINER_PORTS, '[{"name":"http"}]', "containerPort"),
        (names.CONTAINER_GRACE, "soon", "ignored"),
        (names.CONTAINER_GRACE, "-3", ">= 0"),
        (names.CONTAINER_GRACE, "1e999", "ignored"),
        (names.CONTAINER_DELETION_GRACE, "null", "Expected `int`"),
    ],
)
def test_a_note_of_the_kubelet_that_makes_no_sense_is_passed_over_and_told(key, text, says):
    pod = made(containers=(Container(name="main"),), termination_grace_period_seconds=None)
    live, notes = joined(*listed(pod, **{key: text}))
    assert live.containers == {"main": "s-1-main"}
    assert live.pod.spec.termination_grace_period_seconds is None
    assert live.pod.spec.containers == (Container(name="main"),)
    assert len(notes) == 1
    assert notes[0].startswith(f"pod shop/web-0: annotation {key}: ")
    assert says in notes[0]


@pytest.mark.parametrize(
    ("text", "expected", "notes"),
    [("1000", 1000, 0), ("-5", -5, 0), ("high", None, 1), ("3000000000", None, 1), ("1.5", None, 1), ("", None, 1)],
)
def test_priority_by_annotation(text, expected, notes):
    pod = made(containers=(Container(name="main"),))
    live, told = joined(*listed(pod, annotations={names.PRIORITY_ANNOTATION: text}))
    assert live.pod.spec.priority == expected
    assert len(told) == notes


def test_a_container_without_its_sandbox_is_still_its_pods():
    pod = made(containers=(Container(name="main", lifecycle=Lifecycle(pre_stop=HOOK)),))
    _, containers = listed(pod)
    live, _ = joined(None, containers)
    assert (live.pod.key, live.pod.metadata.uid) == ("shop/web-0", "u-1")
    assert live.sandbox == "s-1"
    assert live.pod.spec.containers[0].pre_stop == HOOK


def test_a_container_of_nobodys_making_is_a_pod_of_its_own():
    stray = cri.Container(id="c", pod_sandbox_id="s", metadata=cri.ContainerMetadata(name="stray"))
    live, notes = joined(None, [stray])
    assert (live.pod.metadata.name, live.pod.metadata.uid, live.containers) == ("stray", "s", {"stray": "c"})
    assert notes == []


def test_a_sandbox_without_running_containers_is_no_pod():
    box, _ = listed(made(containers=(Container(name="main"),)))
    assert join_pods([box], [], sources=SpecSources(), node_name="") == ([], [])


def test_pods_come_by_namespace_and_name_whatever_the_order_of_the_list():
    boxes, containers = [], []
    for namespace, name in (("b", "1"), ("a", "2"), ("a", "1")):
        pod = Pod(
            metadata=ObjectMetadata(name=name, namespace=namespace, uid=namespace + name),
            spec=PodSpec(containers=(Container(name="two"), Container(name="one"))),
        )
        box, inside = listed(pod, sandbox=f"s-{namespace}{name}")
        boxes.append(box)
        containers += reversed(inside)
    live, _ = join_pods(boxes, containers, sources=SpecSources(), node_name="")
    assert [one.pod.key for one in live] == ["a/1", "a/2", "b/1"]
    assert list(live[0].containers) == ["two", "one"]  # by their age


class TestManifests:
    """Static pods: the manifest knows what the CRI does not."""

    SIDE = Container(name="side", restart_policy="Always")
    INIT = Container(name="init")

    def manifest(self, **spec):
        containers = {"containers": (Container(name="main"),), "init_containers": (self.INIT, self.SIDE)}
        return Pod(
            metadata=ObjectMetadata(name="etcd", namespace="kube-system"), spec=PodSpec(**{**containers, **spec})
        )

    def live(self, manifest, name="etcd-node-1", node_name="Node-1", **marked):
        bare = Pod(
            metadata=ObjectMetadata(name=name, namespace="kube-system", uid="u-2"),
            spec=PodSpec(containers=(Container(name="side"), Container(name="main"))),
        )
        specs = {(manifest.metadata.namespace, manifest.metadata.name): manifest}
        return joined(*listed(bare, **marked), specs=specs, node_name=node_name)[0].pod

    @pytest.mark.parametrize(
        ("name", "node_name", "found"),
        [
            ("etcd", "node-1", True),
            ("etcd-node-1", "node-1", True),
            ("etcd-node-1", "NODE-1", True),  # the kubelet appends it in lower case
            ("etcd-node-1.example.com", "node-1", True),  # the kubelet's name of the node is not ours
            ("etcd-node-1", "node-1.example.com", True),
            ("etcd-backup-node-1", "node-1", False),  # it is, and the manifest is not there any more
            ("etcd-", "", False),
            ("etcdnode-1", "node-1", False),
            ("etcdnode-1.example.com", "node-1", False),
        ],
    )
    def test_found_by_the_name_with_and_without_the_nodes(self, name, node_name, found):
        pod = self.live(self.manifest(priority=7), name, node_name)
        assert (pod.spec.priority == 7) is found

    def test_by_another_name_of_the_node_the_longest_manifests_name_counts(self):
        specs = {
            ("kube-system", name): Pod(metadata=ObjectMetadata(name=name), spec=PodSpec(priority=number))
            for number, name in enumerate(["etcd", "etcd-events", "etcd-events-old"])
        }
        pod = Pod(
            metadata=ObjectMetadata(name="etcd-events-node-1.example.com", namespace="kube-system", uid="u"),
            spec=PodSpec(containers=(Container(name="main"),)),
        )
        live, notes = joined(*listed(pod), specs=specs)
        assert (live.pod.spec.priority, notes) == (1, [])

    @pytest.mark.parametrize("source", ["api", "http", ""])
    def test_only_a_static_pod_of_the_directory_is_looked_for_by_another_name_of_the_node(self, source):
        pod = self.live(self.manifest(priority=7), "etcd-node-2", annotations={names.CONFIG_SOURCE: source})
        assert pod.spec.priority is None

    def test_a_static_pod_that_no_manifest_is_of_is_told(self):
        pod = Pod(
            metadata=ObjectMetadata(name="dns-node-1", namespace="kube-system", uid="u"),
            spec=PodSpec(containers=(Container(name="main"),)),
        )
        specs = {("kube-system", "etcd"): self.manifest()}
        told = "pod kube-system/dns-node-1: none of the manifests is this static pod's: it counts as one of priority 0"
        assert joined(*listed(pod), specs=specs)[1] == [told]
        for marked, known in (
            ({names.PRIORITY_ANNOTATION: "7"}, specs),
            ({names.CONFIG_SOURCE: "api"}, specs),
            ({}, {}),  # nobody has said where manifests are
        ):
            assert joined(*listed(pod, annotations=marked), specs=known)[1] == []

    def test_of_another_namespace_is_another_pod(self):
        other = Pod(metadata=ObjectMetadata(name="etcd", namespace="default"), spec=PodSpec(priority=7))
        assert self.live(other).spec.priority is None

    def test_a_pod_from_the_api_has_no_manifest_here(self):
        pod = self.live(self.manifest(priority=7), annotations={names.CONFIG_SOURCE: "api"})
        assert pod.spec.priority is None

    def test_gives_priority_sidecars_and_grace_and_the_runtime_the_rest(self):
        pod = self.live(self.manifest(priority_class_name="system-node-critical", termination_grace_period_seconds=9))
        assert pod_priority(pod) == 2_000_001_000
        assert [container.name for container in list_sidecars(pod)] == ["side"]
        assert [container.name for container in pod.spec.containers] == ["main"]
        assert pod.spec.termination_grace_period_seconds == 9
        assert (pod.metadata.name, pod.metadata.uid) == ("etcd-node-1", "u-2")

    def test_the_grace_and_the_hooks_that_run_win_over_an_edited_manifest(self):
        edited = LifecycleHandler(exec=ExecAction(command=("edited",)))
        side = Container(name="side", restart_policy="Always", lifecycle=Lifecycle(pre_stop=edited))
        main = Container(name="main", lifecycle=Lifecycle(pre_stop=edited))
        manifest = self.manifest(containers=(main,), init_containers=(side,), termination_grace_period_seconds=9)
        pod = self.live(manifest, **{names.CONTAINER_GRACE: "30"})
        assert pod.spec.termination_grace_period_seconds == 30
        assert [c.pre_stop for c in pod.spec.containers + pod.spec.init_containers] == [None, None]

    @pytest.mark.parametrize(
        ("spec", "expected"),
        [({"priority": 7}, 7), ({"priority_class_name": "system-node-critical"}, 2_000_001_000), ({}, 100)],
    )
    def test_the_specs_priority_goes_before_the_annotation(self, spec, expected):
        assert (
            pod_priority(self.live(self.manifest(**spec), annotations={names.PRIORITY_ANNOTATION: "100"})) == expected
        )
