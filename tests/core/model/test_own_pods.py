"""The pods of the API as an agent keeps them."""

import msgspec
import pytest

from lastcall.model.own_pods import keep_essentials, runtime_uid
from lastcall.model.pod_checkpoint import decode_checkpoint, encode_checkpoint
from lastcall.model.pods import Pod, asked_grace
from lastcall.names import MIRROR_ANNOTATION

FULL = {
    "metadata": {
        "name": "web-0",
        "namespace": "shop",
        "uid": "u-1",
        "resourceVersion": "17",
        "generation": 3,
        "labels": {"app": "web"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "password"},
        "ownerReferences": [{"kind": "StatefulSet", "name": "web", "uid": "o-1", "controller": True}],
        "deletionTimestamp": "2026-11-21T12:00:00Z",
        "deletionGracePeriodSeconds": 5,
    },
    "spec": {
        "nodeName": "n1",
        "priority": 2_000_000_000,
        "priorityClassName": "system-cluster-critical",
        "terminationGracePeriodSeconds": 60,
        "hostNetwork": True,
        "tolerations": [{"operator": "Exists"}],
        "initContainers": [{"name": "mesh", "image": "m", "restartPolicy": "Always"}],
        "containers": [
            {
                "name": "main",
                "image": "i",
                "env": [{"name": "KEY", "value": "password"}],
                "command": ["serve", "--password"],
                "ports": [{"name": "http", "containerPort": 80}],
                "lifecycle": {"preStop": {"httpGet": {"port": "http", "path": "/bye"}}, "stopSignal": "SIGUSR1"},
            }
        ],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
            {"name": "socket", "hostPath": {"path": "/var/lib/kubelet/plugins/d.example.com"}},
            {"name": "logs", "hostPath": {"path": "/var/log"}},
            {"name": "keys", "csi": {"driver": "secrets.example.com", "volumeAttributes": {"a": "b"}}},
            {"name": "token", "projected": {"sources": []}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "cni", "hostPath": {"path": "/opt/cni/bin"}},
        ],
    },
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}


def read(document=FULL, **metadata):
    return msgspec.convert({**document, "metadata": {**document["metadata"], **metadata}}, Pod)


def named(name, priority, size=0):
    spec = {"priority": priority, "containers": [{"name": "c" * (size or 1)}]}
    return msgspec.convert({"metadata": {"name": name, "uid": name}, "spec": spec}, Pod)


def test_what_ends_a_pod_in_order_is_kept_and_no_secret():
    kept = keep_essentials(read())
    data, left_out = encode_checkpoint([kept])
    assert (decode_checkpoint(data), left_out) == ({"u-1": kept}, 0)
    assert b"password" not in data
    assert b'"env"' not in data
    [main] = kept.spec.containers
    assert (main.stop_signal, main.pre_stop.http_get.path) == ("SIGUSR1", "/bye")
    assert main.ports[0].container_port == 80
    assert kept.spec.init_containers[0].restart_policy == "Always"
    assert (kept.spec.priority, kept.spec.priority_class_name) == (2_000_000_000, "system-cluster-critical")
    assert (kept.spec.termination_grace_period_seconds, kept.metadata.deletion_grace_period_seconds) == (60, 5)
    assert kept.metadata.owner_references[0].kind == "StatefulSet"
    assert (kept.metadata.labels, kept.spec.host_network) == ({"app": "web"}, True)
    assert [volume.name for volume in kept.spec.volumes] == ["data", "scratch", "socket", "keys", "cni"]
    assert kept.spec.volumes[0].persistent_volume_claim.claim_name == "data-web-0"
    assert kept.spec.volumes[3].csi.driver == "secrets.example.com"


def test_what_changes_often_changes_nothing():
    later = {**FULL, "status": {"phase": "Failed"}}
    assert keep_essentials(read(later, resourceVersion="99", annotations={"x": "y"})) == keep_essentials(read())


def test_a_mirror_pod_is_its_static_pod_whose_end_its_deletion_is_not():
    mirror = read(annotations={MIRROR_ANNOTATION: "hash", "other": "x"})
    kept = keep_essentials(mirror)
    assert runtime_uid(read()) == "u-1"
    assert runtime_uid(mirror) == runtime_uid(kept) == "hash"
    assert kept.metadata.annotations == {MIRROR_ANNOTATION: "hash"}
    assert (kept.metadata.deletion_timestamp, kept.metadata.deletion_grace_period_seconds) == (None, None)
    assert list(decode_checkpoint(encode_checkpoint([kept])[0])) == ["hash"]


def test_of_too_many_pods_those_of_high_priority_are_kept():
    pods = [named("low", 1, 500), named("high", 2_000_000_000, 500), named("middle", 1000, 500)]
    whole, _ = encode_checkpoint(pods)
    data, left_out = encode_checkpoint(pods, most=len(whole) - 1)
    assert (list(decode_checkpoint(data)), left_out) == (["high", "middle"], 1)
    assert len(data) < len(whole)
    assert encode_checkpoint(pods, most=len(whole) + 1)[1] == 0
    assert encode_checkpoint(pods, most=20) == (b'{"pods":[]}', 3)


@pytest.mark.parametrize(
    "data", [b"", b'{"pods":[{"metadata"', b'{"pods":7}', b"null", b"\xff", b'{"pods":[{"spec":{"priority":"high"}}]}']
)
def test_a_broken_checkpoint_is_an_error(data):
    with pytest.raises(ValueError):  # noqa: PT011 - the text is msgspec's
        decode_checkpoint(data)


@pytest.mark.parametrize(
    ("own", "deletion", "asked"),
    [(30, None, 30), (30, 5, 5), (30, 300, 30), (None, 5, 5), (None, None, None), (30, 0, 0)],
)
def test_a_deletion_only_shortens_the_grace_period(own, deletion, asked):
    spec = {**FULL["spec"], "terminationGracePeriodSeconds": own}
    pod = read({**FULL, "spec": spec}, deletionGracePeriodSeconds=deletion)
    assert asked_grace(pod) == asked
