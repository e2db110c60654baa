"""``watchdog`` in the agent's configuration: what is read, and what is said about what is wrong."""

import pytest

from lastcall.errors import InvalidInput
from lastcall.graceful import config
from lastcall.model.watchdog import WatchdogSettings
from lastcall.model.watchdog_peers import PeerSettings

AGENT = "apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\n"
KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


def read(text, head=AGENT):
    return config.parse_config(f"{head}{text}".encode(), "f")


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("", None),
        ("watchdog:\n", None),
        ("watchdog: {}\n", WatchdogSettings()),
        ("watchdog: {leaseSeconds: 40}\n", WatchdogSettings(lease_seconds=40)),
        (
            "watchdog: {device: /dev/watchdog1, leaseSeconds: 30, petSeconds: 2.5, timeoutSeconds: 10, drift: 0.05}\n",
            WatchdogSettings(
                device="/dev/watchdog1", lease_seconds=30, pet_seconds=2.5, timeout_seconds=10, drift=0.05
            ),
        ),
        ("watchdog: {peers: {}}\n", WatchdogSettings(peers=PeerSettings(port=9468))),
        ("watchdog: {peers: {port: 7000}}\n", WatchdogSettings(peers=PeerSettings(port=7000))),
        ("watchdog: {peers: null}\n", WatchdogSettings()),
    ],
)
def test_what_is_read(text, settings):
    assert read(text).watchdog == settings


def test_a_kubelets_file_has_none():
    assert read("watchdog: {leaseSeconds: 1}\n", KUBELET).watchdog is None


WRONG = {
    "watchdog: 7": "watchdog: 7: must be a mapping, not an integer",
    "watchdog: {timeoutSeconds: 12.5}": "watchdog.timeoutSeconds: 12.5: must be an integer, not a number",
    "watchdog: {timeoutSeconds: 0}": "watchdog.timeoutSeconds: 0: must be an integer >= 1",
    "watchdog: {device: ''}": 'watchdog.device: "": must be text of length >= 1',
    "watchdog: {leaseSecs: 12}": "watchdog.leaseSecs: 12: unknown field, did you mean leaseSeconds?",
    "watchdog: {timeoutSeconds: 10}": (
        "watchdog.timeoutSeconds: 10: must be more than 2 * 5 s pet * 1.01 = 10.1 s, or one late pet resets a healthy node"
    ),
    "watchdog: {leaseSeconds: 10}": (
        "watchdog.leaseSeconds: 10: must be more than 2 * 5 s pet = 10 s, or one late renewal resets a healthy node"
    ),
    "watchdog: {petSeconds: -1}": "watchdog.petSeconds: -1: must be more than 0 s",
    "watchdog: {drift: 0.5}": "watchdog.drift: 0.5: must be from 0 to 0.1",
    "watchdog: {drift: 0}": "watchdog.drift: 0: must be a number >= 0.001",
    "watchdog: {leaseSeconds: 40, peers: {}}": (
        "watchdog.leaseSeconds: 40: must be more than 2 * 4 * 5 s pet = 40 s with peers, or nodes reset before they have agreed"
    ),
    "watchdog: {peers: 9468}": "watchdog.peers: 9468: must be a mapping, not an integer",
    "watchdog: {peers: {port: 623}}": "watchdog.peers.port: 623: must be an integer >= 1024",
    "watchdog: {peers: {ports: 7}}": "watchdog.peers.ports: 7: unknown field, did you mean port?",
    "watchdog: {leaseSeconds: .inf}": "watchdog.leaseSeconds, watchdog.timeoutSeconds: inf, 15: must be finite",
}


@pytest.mark.parametrize(("text", "told"), WRONG.items(), ids=WRONG)
def test_what_is_wrong_is_told_by_its_field(text, told):
    with pytest.raises(InvalidInput) as caught:
        read(f"{text}\n")
    assert f"f: {told}" in str(caught.value)


def test_all_that_is_wrong_is_told_at_once():
    with pytest.raises(InvalidInput) as caught:
        read("mode: x\nwatchdog: {petSeconds: 30, drift: 1, devise: /dev/x}\n")
    told = [violation.split(": ")[0] for violation in caught.value.violations]
    assert told == ["watchdog.devise", "mode", "watchdog.drift", "watchdog.timeoutSeconds", "watchdog.leaseSeconds"]
