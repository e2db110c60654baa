"""Configurations: what is read, and what is said about those that are wrong."""

import json
from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.common.documents import LIST, SHAPES, message

from lastcall.errors import InvalidInput
from lastcall.graceful import config
from lastcall.model.shutdown import PhasePlan, ShutdownMode

CRITICAL = 2_000_000_000
AGENT = "apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\n"
KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
INVALID = "f: invalid configuration:"
ZERO = "must be at least 1, or the group's pods get no time"


def read(text):
    return config.parse_config(text.encode(), "f")


def groups(*pairs):
    return tuple(PhasePlan(priority=priority, seconds=seconds) for priority, seconds in pairs)


EITHER = [  # what both kinds make of the same fields
    ("", ()),
    ("shutdownGracePeriod:\n", ()),
    ("shutdownGracePeriod: null\nshutdownGracePeriodByPodPriority: null\nfeatureGates: null\n", ()),
    ("shutdownGracePeriod: 0s\nshutdownGracePeriodCriticalPods: '0'\n", ()),
    ("shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n", ((0, 20), (CRITICAL, 10))),
    ("shutdownGracePeriod: 30s\n", ((0, 30), (CRITICAL, 0))),
    ("shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 30s\n", ((0, 0), (CRITICAL, 30))),
    ("shutdownGracePeriod: 30.9s\nshutdownGracePeriodCriticalPods: 10.5s\n", ((0, 20), (CRITICAL, 10))),
    ("shutdownGracePeriod: 1.5s\nshutdownGracePeriodCriticalPods: 1s\n", ((0, 0), (CRITICAL, 1))),
    ("shutdownGracePeriod: 1h\nshutdownGracePeriodCriticalPods: 10m\n", ((0, 3000), (CRITICAL, 600))),
    ("featureGates: {GracefulNodeShutdown: false}\n", ()),
    (
        (
            "featureGates: {GracefulNodeShutdownBasedOnPodPriority: false}\nshutdownGracePeriod: 9s\n"
            "shutdownGracePeriodCriticalPods: 4s\n"
        ),
        ((0, 5), (CRITICAL, 4)),
    ),
    (f"{LIST}: []\nshutdownGracePeriod: 9s\nshutdownGracePeriodCriticalPods: 4s\n", ((0, 5), (CRITICAL, 4))),
    (
        (
            f"{LIST}:\n- {{priority: 1000, shutdownGracePeriodSeconds: 120}}\n"
            "- {priority: -5, shutdownGracePeriodSeconds: 7}\n- {shutdownGracePeriodSeconds: 180}\n"
        ),
        ((-5, 7), (0, 180), (1000, 120)),
    ),
    (f"{LIST}: [{{priority: 5, shutdownGracePeriodSeconds: 7}}]\nfeatureGates: {{GracefulNodeShutdown: false}}\n", ()),
    (
        "featureGates: {GracefulNodeShutdown: yes}\nshutdownGracePeriod: 2s\nshutdownGracePeriodCriticalPods: 1s\n",
        ((0, 1), (CRITICAL, 1)),
    ),
]


@pytest.mark.parametrize("head", [AGENT, KUBELET], ids=["agent", "kubelet"])
@pytest.mark.parametrize(("text", "expected"), EITHER, ids=range(len(EITHER)))
def test_groups(head, text, expected):
    found = read(head + text)
    assert found.groups == groups(*expected)
    assert found.is_enabled == bool(expected)
    assert found.requested_seconds == sum(seconds for _, seconds in expected)
    assert found.mode is ShutdownMode.ENFORCE


def test_json_is_read_too():
    text = '{"apiVersion": "lastcall.dev/v1alpha1", "kind": "AgentConfiguration", "shutdownGracePeriod": "30s"}'
    assert read(text).groups == groups((0, 30), (CRITICAL, 0))


def test_a_kubelet_configuration_is_taken_as_it_is():
    found = read(
        KUBELET
        + """
address: 0.0.0.0
authentication: {anonymous: {enabled: false}, webhook: {cacheTTL: 0s}}
clusterDNS: [10.96.0.10]
cpuManagerReconcilePeriod: 0s
evictionHard: {memory.available: 100Mi}
featureGates: {SomethingElse: true, Odd: 7, GracefulNodeShutdown: true}
logging: {flushFrequency: 0, options: {json: {infoBufferSize: "0"}}}
mode: whatever
shutdownGracePeriod: 30s
shutdownGracePeriodCriticalPods: 10s
staticPodPath: /etc/kubernetes/manifests
volumeStatsAggPeriod: 0s
"""
    )
    assert found.kind == "KubeletConfiguration"
    assert found.static_pod_path == "/etc/kubernetes/manifests"
    assert found.groups == groups((0, 20), (CRITICAL, 10))
    assert found.warnings == ()


def test_observe():
    found = read(AGENT + "mode: Observe\n")
    assert (found.kind, found.mode, found.static_pod_path) == ("AgentConfiguration", ShutdownMode.OBSERVE, "")
    assert read(AGENT + "mode:\n").mode is ShutdownMode.ENFORCE


def test_concerns_are_warnings_in_a_kubelet_configuration():
    text = f"{LIST}:\n- {{priority: 0}}\n- {{priority: 9, shutdownGracePeriodSeconds: 9223372037}}\n"
    found = read(KUBELET + text)
    assert found.groups == groups((0, 0), (9, 9223372037))
    assert found.warnings == (
        f"{LIST}[0].shutdownGracePeriodSeconds: 0: {ZERO}",
        f"{LIST}: 9223372037: the sum of all seconds must be at most 9223372036, or the kubelet's int64 overflows",
    )
    assert message(config.parse_config, AGENT + text) == "\n".join(f"f: {warning}" for warning in found.warnings)


WRONG_CONFIGS = [
    ("", "f: document: empty: expected one KubeletConfiguration or AgentConfiguration"),
    ("---\n---\n", "f: document: empty: expected one KubeletConfiguration or AgentConfiguration"),
    (AGENT + "---\n" + AGENT, "f: document: 2 documents: expected one KubeletConfiguration or AgentConfiguration"),
    ("[]", "f: document: []: expected one KubeletConfiguration or AgentConfiguration"),
    ("30s", 'f: document: "30s": expected one KubeletConfiguration or AgentConfiguration'),
    ("a: [", "f: line 2, column 1: did not find expected node content"),
    (AGENT + "\tmode: Observe", "f: line 3, column 1: found a tab character that violates indentation"),
    (AGENT + "mode: Observe\nmode: Enforce\n", 'f: line 4, column 1: key "mode" already set in map'),
    ("shutdownGracePeriod: 30s\n", "f: kind: missing: must be KubeletConfiguration or AgentConfiguration"),
    ("kind: Pod\napiVersion: v1\n", 'f: kind: "Pod": must be KubeletConfiguration or AgentConfiguration'),
    ("kind: [x]\n", 'f: kind: ["x"]: must be KubeletConfiguration or AgentConfiguration'),
    ("kind: AgentConfiguration\n",
     "f: apiVersion: missing: must be lastcall.dev/v1alpha1 for kind AgentConfiguration"),
    ("kind: AgentConfiguration\napiVersion: lastcall.dev/v1\n",
     'f: apiVersion: "lastcall.dev/v1": must be lastcall.dev/v1alpha1 for kind AgentConfiguration'),
    ("kind: KubeletConfiguration\napiVersion: lastcall.dev/v1alpha1\n",
     'f: apiVersion: "lastcall.dev/v1alpha1": must be kubelet.config.k8s.io/v1beta1 for kind KubeletConfiguration'),
    (AGENT + "shutdownGraceperiod: 30s\n",
     'f: shutdownGraceperiod: "30s": unknown field, did you mean shutdownGracePeriod?'),
    (AGENT + "cgroupDriver: /x\n",
     ('f: cgroupDriver: "/x": unknown field, known are apiVersion, kind, shutdownGracePeriod, '
     "shutdownGracePeriodCriticalPods, shutdownGracePeriodByPodPriority, featureGates, staticPodPath, mode, watchdog, "
     "storageLease, traffic, deadlines")),
    (AGENT + "featureGates: {GracefulNodeshutdown: true}\n",
     "f: featureGates.GracefulNodeshutdown: true: unknown field, did you mean GracefulNodeShutdown?"),
    (AGENT + f"{LIST}: [{{priority: 1, seconds: 3, shutdownGracePeriodSeconds: 3}}]\n",
     f"f: {LIST}[0].seconds: 3: unknown field, known are priority, shutdownGracePeriodSeconds"),
    (AGENT + "mode: enforce\n", 'f: mode: "enforce": must be Enforce or Observe'),
    (AGENT + "mode: on\n", "f: mode: true: must be Enforce or Observe"),
    (AGENT + "shutdownGracePeriod: 30\n", 'f: shutdownGracePeriod: 30: must be a duration as text, such as "30s"'),
    (KUBELET + "shutdownGracePeriod: 30\n", 'f: shutdownGracePeriod: 30: must be a duration as text, such as "30s"'),
    (AGENT + "shutdownGracePeriod: {}\n", 'f: shutdownGracePeriod: {}: must be a duration as text, such as "30s"'),
    (AGENT + "shutdownGracePeriod: '30'\n",
     'f: shutdownGracePeriod: "30": time: missing unit in duration "30"'),
    (AGENT + "shutdownGracePeriod: 1d\n", 'f: shutdownGracePeriod: "1d": time: unknown unit "d" in duration "1d"'),
    (AGENT + "shutdownGracePeriod: ''\n", 'f: shutdownGracePeriod: "": time: invalid duration ""'),
    (AGENT + "shutdownGracePeriod: 2562048h\n",
     'f: shutdownGracePeriod: "2562048h": time: invalid duration "2562048h"'),
    (AGENT + "shutdownGracePeriod: 1s\nshutdownGracePeriodCriticalPods: 2s\n",
     f"{INVALID} shutdownGracePeriodCriticalPods {{2s}} must be <= shutdownGracePeriod {{1s}}"),
    (KUBELET + "shutdownGracePeriod: 1ms\n",
     f"{INVALID} shutdownGracePeriod {{1ms}} must be either zero or otherwise >= 1 sec"),
    (KUBELET + "shutdownGracePeriod: -30s\nshutdownGracePeriodCriticalPods: -40s\n",
     (f"{INVALID} shutdownGracePeriod {{-30s}} must be either zero or otherwise >= 1 sec\n"
     f"{INVALID} shutdownGracePeriodCriticalPods {{-40s}} must be either zero or otherwise >= 1 sec")),
    (KUBELET + "shutdownGracePeriod: 1s\nshutdownGracePeriodCriticalPods: 1ms\n",
     f"{INVALID} shutdownGracePeriodCriticalPods {{1ms}} must be either zero or otherwise >= 1 sec"),
    (KUBELET + "featureGates: {GracefulNodeShutdown: false}\nshutdownGracePeriod: 1s\n",
     (f"{INVALID} specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate "
     "GracefulNodeShutdown")),
    (KUBELET + f"shutdownGracePeriod: 1s\n{LIST}: [{{priority: 0, shutdownGracePeriodSeconds: 1}}]\n",
     f"{INVALID} Cannot specify both {LIST} and shutdownGracePeriod at the same time"),
    (KUBELET + "featureGates: {GracefulNodeShutdownBasedOnPodPriority: false}\n"
     f"{LIST}: [{{priority: 0, shutdownGracePeriodSeconds: 1}}]\n",
     f"{INVALID} Specifying {LIST} requires feature gate GracefulNodeShutdownBasedOnPodPriority"),
    (AGENT + "featureGates: []\n", "f: featureGates: []: must be a mapping, not a list"),
    (KUBELET + "featureGates: {GracefulNodeShutdown: 'true'}\n",
     'f: featureGates.GracefulNodeShutdown: "true": must be true or false'),
    (KUBELET + "featureGates: {GracefulNodeShutdown: }\n",
     "f: featureGates.GracefulNodeShutdown: null: must be true or false"),
    (KUBELET + "staticPodPath: 7\n", "f: staticPodPath: 7: must be text, not an integer"),
    (AGENT + f"{LIST}: {{}}\n", f"f: {LIST}: {{}}: must be a list, not a mapping"),
    (AGENT + f"{LIST}: [10]\n", f"f: {LIST}[0]: 10: must be a mapping of priority and shutdownGracePeriodSeconds"),
    (AGENT + f"{LIST}: [{{priority: high, shutdownGracePeriodSeconds: 1}}]\n",
     f'f: {LIST}[0].priority: "high": must be an integer, not text'),
    (AGENT + f"{LIST}: [{{priority: 2147483648, shutdownGracePeriodSeconds: 1}}]\n",
     f"f: {LIST}[0].priority: 2147483648: must be an integer <= 2147483647"),
    (AGENT + f"{LIST}: [{{priority: 1, shutdownGracePeriodSeconds: 10s}}]\n",
     f'f: {LIST}[0].shutdownGracePeriodSeconds: "10s": must be an integer, not text'),
    (AGENT + f"{LIST}: [{{priority: 1, shutdownGracePeriodSeconds: 1.5}}]\n",
     f"f: {LIST}[0].shutdownGracePeriodSeconds: 1.5: must be an integer, not a number"),
    (AGENT + f"{LIST}: [{{priority: 1, shutdownGracePeriodSeconds: 9223372036854775808}}]\n",
     f"f: {LIST}[0].shutdownGracePeriodSeconds: 9223372036854775808: must be an integer <= 9223372036854775807"),
    (KUBELET + f"{LIST}: [{{priority: 1, shutdownGracePeriodSeconds: -1}}]\n",
     f"f: {LIST}[0].shutdownGracePeriodSeconds: -1: must not be negative"),
    (KUBELET + f"{LIST}:\n- {{priority: 1, shutdownGracePeriodSeconds: 1}}\n"
     "- {priority: 1, shutdownGracePeriodSeconds: 2}\n",
     f"f: {LIST}[1].priority: 1: must be unique, see {LIST}[0]"),
    (AGENT + f"{LIST}: [{{priority: 1, shutdownGracePeriodSeconds: 0}}]\n",
     f"f: {LIST}[0].shutdownGracePeriodSeconds: 0: {ZERO}"),
    (AGENT + f"{LIST}: [{{priority: 1}}]\n", f"f: {LIST}[0].shutdownGracePeriodSeconds: 0: {ZERO}"),
    # everything at once, each at its own index, and nothing that only follows from something else
    (AGENT + f"""
shutdownGracePeriod: 30
shutdownGracePeriodCriticalPods: 10s
{LIST}:
- {{priority: high, shutdownGracePeriodSeconds: 0}}
- {{priority: 3000000000, shutdownGracePeriodSeconds: -1}}
- {{priority: 3, shutdownGracePeriodSeconds: x}}
- 7
- {{priority: 3, shutdownGracePeriodSecond: 3, shutdownGracePeriodSeconds: 5}}
mode: enforce
featureGates: {{GracefulNodeShutdown: 1}}
""",
     f"""\
f: {LIST}[4].shutdownGracePeriodSecond: 3: unknown field, did you mean shutdownGracePeriodSeconds?
f: mode: "enforce": must be Enforce or Observe
f: shutdownGracePeriod: 30: must be a duration as text, such as "30s"
f: {LIST}[0].priority: "high": must be an integer, not text
f: {LIST}[1].priority: 3000000000: must be an integer <= 2147483647
f: {LIST}[2].shutdownGracePeriodSeconds: "x": must be an integer, not text
f: {LIST}[3]: 7: must be a mapping of priority and shutdownGracePeriodSeconds
f: featureGates.GracefulNodeShutdown: 1: must be true or false
{INVALID} Cannot specify both {LIST} and shutdownGracePeriod at the same time
f: {LIST}[1].shutdownGracePeriodSeconds: -1: must not be negative
f: {LIST}[4].priority: 3: must be unique, see {LIST}[2]
f: {LIST}[0].shutdownGracePeriodSeconds: 0: {ZERO}"""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), WRONG_CONFIGS, ids=range(len(WRONG_CONFIGS)))
def test_what_is_said_about_wrong_configurations(text, expected):
    assert message(config.parse_config, text) == expected


@given(SHAPES, st.sampled_from([AGENT, KUBELET]))
def test_whatever_a_configuration_holds_it_is_read_or_refused(value, head):
    document = yaml.safe_load(head) | (value if isinstance(value, dict) else {"shutdownGracePeriod": value})
    with suppress(InvalidInput):
        assert isinstance(read(json.dumps(document)), config.AgentConfig)
