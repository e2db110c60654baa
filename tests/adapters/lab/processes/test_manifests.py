"""What pods as processes can honour of a manifest, and their addresses."""

import os

import msgspec
import pytest

from lastcall.errors import InvalidInput
from lastcall.model.pods import Pod
from lastcall_lab.processes import command_spec, pod_addresses

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run processes as others")


class TestManifests:
    """What cannot be honoured is refused, with field, value and rule."""

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"command": None}, "spec.containers[0].command: required"),
            ({"command": None, "args": ["x"]}, "spec.containers[0].command: required"),
            ({"command": ["no-such-program"]}, 'spec.containers[0].command[0]: "no-such-program": must be a program'),
            ({"command": ["/etc/passwd"]}, 'spec.containers[0].command[0]: "/etc/passwd": must be a program'),
            ({"workingDir": "tmp"}, 'spec.containers[0].workingDir: "tmp": must be the absolute path'),
            ({"workingDir": "/no/such"}, 'spec.containers[0].workingDir: "/no/such": must be the absolute path'),
            ({"name": "Main"}, 'spec.containers[0].name: "Main": must be a DNS label'),
            ({"name": "../x"}, 'spec.containers[0].name: "../x": must be a DNS label'),
            ({"env": [{"name": "A=B"}]}, 'spec.containers[0].env: "A=B": must be a name without "="'),
            ({"env": [{"name": "A", "value": "x\0"}]}, 'spec.containers[0].env: "A": must be a name without'),
            (
                {"volumeMounts": [{"name": "no", "mountPath": "/x"}]},
                'volumeMounts[0].name: "no": no volume has this name',
            ),
            ({"volumeMounts": [{"name": "tmp", "mountPath": "/x"}]}, 'volumeMounts[0].name: "tmp": an emptyDir needs'),
            (
                {"volumeMounts": [{"name": "etc", "mountPath": "/x"}]},
                'mountPath: "/x": must be the hostPath itself, "/etc"',
            ),
            (
                {"volumeMounts": [{"name": "odd", "mountPath": "/x"}]},
                'volumeMounts[0].name: "odd": this kind of volume',
            ),
            ({"securityContext": {"runAsUser": -1}}, "securityContext.runAsUser: -1: must be between 0 and 2147483647"),
            ({"securityContext": {"runAsGroup": 2**31}}, "securityContext.runAsGroup: 2147483648: must be between"),
        ],
    )
    def test_containers(self, change, message):
        facts = {"name": "main", "command": ["sleep"], **change}
        volumes = [{"name": "tmp", "emptyDir": {}}, {"name": "etc", "hostPath": {"path": "/etc"}}, {"name": "odd"}]
        with pytest.raises(InvalidInput) as caught:
            command_spec.check_manifest(made({"containers": [facts], "volumes": volumes}))
        assert len(caught.value.violations) == 1
        assert message in caught.value.violations[0]

    @pytest.mark.parametrize(
        ("metadata", "message"),
        [
            ({"name": ""}, 'metadata.name: "": must be'),
            ({"name": "a/b"}, 'metadata.name: "a/b": must be'),
            ({"namespace": ".."}, 'metadata.namespace: "..": must be'),
            ({"uid": ""}, 'metadata.uid: "": must be'),
            ({"uid": "../.."}, 'metadata.uid: "../..": must be'),
        ],
    )
    def test_metadata(self, metadata, message):
        with pytest.raises(InvalidInput) as caught:
            command_spec.check_manifest(made({"containers": [{"name": "main", "command": ["sleep"]}]}, **metadata))
        assert [violation[: len(message)] for violation in caught.value.violations] == [message]

    def test_all_at_once(self):
        with pytest.raises(InvalidInput) as caught:
            command_spec.check_manifest(made({"initContainers": [{"name": "a"}, {"name": "a"}]}))
        assert caught.value.violations == (
            "spec.containers: must not be empty",
            'spec.initContainers[1].name: "a": two containers have this name',
            "spec.initContainers[0].command: required, since a process has no image that could name a program",
            "spec.initContainers[1].command: required, since a process has no image that could name a program",
        )

    def test_another_user_needs_root(self, monkeypatch):
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        monkeypatch.setattr(os, "getegid", lambda: 1000)
        one = {"name": "main", "command": ["sleep"], "securityContext": {"runAsUser": 1001}}
        with pytest.raises(InvalidInput, match="runAsUser: 1001: only root can run processes as others; this is 1000"):
            command_spec.check_manifest(made({"containers": [one]}))
        one["securityContext"] = {"runAsUser": 1000, "runAsGroup": 1000}
        command_spec.check_manifest(made({"containers": [one]}))


def made(spec, **metadata):
    return msgspec.convert({"metadata": {"name": "web", "uid": "u-1", **metadata}, "spec": spec}, Pod)


class TestUsers:
    @as_root
    def test_the_containers_goes_before_the_pods(self):
        own = {"name": "a", "command": ["sleep"], "securityContext": {"runAsUser": 5}}
        other = {"name": "b", "command": ["sleep"]}
        context = {"runAsUser": 12345, "runAsGroup": 23456}
        pod = made({"containers": [own, other], "securityContext": context})
        assert [command_spec.container_command(pod, one).user for one in pod.spec.containers] == [
            (5, 23456),
            (12345, 23456),
        ]

    @as_root
    def test_one_without_a_group_never_gets_roots(self):
        pod = made({"containers": [{"name": "a", "command": ["sleep"], "securityContext": {"runAsUser": 54321}}]})
        assert command_spec.container_command(pod, pod.spec.containers[0]).user == (54321, 54321)

    def test_without_a_word_it_is_ours(self):
        pod = made({"containers": [{"name": "a", "command": ["sleep"]}]})
        assert command_spec.container_command(pod, pod.spec.containers[0]).user is None


class TestAddresses:
    def test_the_same_pod_has_the_same_address(self):
        assert pod_addresses.choose_address("one", "default/web", set()) == pod_addresses.choose_address(
            "one", "default/web", set()
        )
        assert pod_addresses.choose_address("one", "default/web", set()) != pod_addresses.choose_address(
            "one", "default/db", set()
        )

    def test_two_nodes_of_one_machine_do_not_share_addresses(self):
        assert pod_addresses.choose_address("one", "default/web", set()) != pod_addresses.choose_address(
            "two", "default/web", set()
        )

    def test_no_two_pods_share_one(self):
        taken = set()
        for _ in range(1000):
            address = pod_addresses.choose_address("one", "default/web", taken)
            assert address not in taken
            parts = [int(part) for part in address.split(".")]
            assert parts[0] == 127
            assert 64 <= parts[1] < 128
            assert 1 <= parts[3] <= 254
            taken.add(address)
