"""``storageLease`` in the agent's configuration: what is read, and what is said about what is wrong."""

import pytest

from lastcall.errors import InvalidInput
from lastcall.graceful import config
from lastcall.model.storage_lease import SanlockSettings, StorageLeaseSettings

AGENT = "apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\n"
KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def read(text, head=AGENT):
    return config.parse_config(f"{head}{text}\n".encode(), "f")


def lease(**sanlock):
    return StorageLeaseSettings(sanlock=SanlockSettings(**sanlock))


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("", None),
        ("storageLease:", None),
        ("storageLease: {sanlock: {lockspace: lvm_vg0}}", lease(lockspace="lvm_vg0")),
        (
            "storageLease: {sanlock: {lockspace: 3b.9_x-1, resetsMachine: true}}",
            lease(lockspace="3b.9_x-1", resets_machine=True),
        ),
    ],
)
def test_what_is_read(text, settings):
    assert read(text).storage_lease == settings


def test_a_kubelets_file_has_none():
    assert read("storageLease: 7", KUBELET).storage_lease is None


WRONG = {
    "storageLease: 7": "storageLease: 7: must be a mapping, not an integer",
    "storageLease: {}": "storageLease.sanlock: missing: must be given",
    "storageLease: {sanlock: {}}": "storageLease.sanlock.lockspace: missing: must be given",
    "storageLease: {sanlock: {lockspace: ''}}": 'storageLease.sanlock.lockspace: "": must be text of length >= 1',
    "storageLease: {sanlock: {lockspace: 'a b'}}": 'storageLease.sanlock.lockspace: "a b": must be text matching',
    "storageLease: {sanlock: {lockspace: 'a:1'}}": 'storageLease.sanlock.lockspace: "a:1": must be text matching',
    'storageLease: {sanlock: {lockspace: "a\\n"}}': "must be text matching",
    f"storageLease: {{sanlock: {{lockspace: {'a' * 49}}}}}": "must be text of length <= 48",
    "storageLease: {sanlock: {lockspace: a, resetsMachine: 1}}": (
        "storageLease.sanlock.resetsMachine: 1: must be true or false, not an integer"
    ),
    "storageLease: {sanlock: {lockspace: a, resetMachine: true}}": (
        "storageLease.sanlock.resetMachine: true: unknown field, did you mean resetsMachine?"
    ),
    "storageLease: {lockspace: a}": 'storageLease.lockspace: "a": unknown field, known are sanlock',
}


@pytest.mark.parametrize(("text", "told"), WRONG.items(), ids=WRONG)
def test_what_is_wrong_is_told_by_its_field(text, told):
    with pytest.raises(InvalidInput) as caught:
        read(text)
    assert told in str(caught.value)
