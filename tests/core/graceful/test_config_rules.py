"""The kubelet's six rules in its exact words, and our own."""

import pytest

from lastcall.graceful import config_rules
from lastcall.graceful.config_rules import GracePeriods, PriorityItem
from lastcall.model.duration import SECOND

MS = 1_000_000
SHORT = "must be either zero or otherwise >= 1 sec"
CRITICAL_MOST = "invalid configuration: shutdownGracePeriodCriticalPods {%s} must be <= shutdownGracePeriod {%s}"
GATE = (
    "invalid configuration: specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods "
    "requires feature gate GracefulNodeShutdown"
)
BOTH = (
    "invalid configuration: Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod "
    "at the same time"
)
PRIORITY_GATE = (
    "invalid configuration: Specifying shutdownGracePeriodByPodPriority requires feature gate "
    "GracefulNodeShutdownBasedOnPodPriority"
)
ITEMS = (PriorityItem(priority=0, seconds=10),)

KUBELET = [
    (GracePeriods(), []),
    (GracePeriods(total=30 * SECOND, critical=10 * SECOND), []),
    (GracePeriods(total=SECOND, critical=SECOND), []),
    (GracePeriods(by_priority=ITEMS), []),
    (GracePeriods(total=SECOND, critical=2 * SECOND), [CRITICAL_MOST % ("2s", "1s")]),
    (GracePeriods(critical=90 * SECOND), [CRITICAL_MOST % ("1m30s", "0s")]),
    (GracePeriods(total=MS), [f"invalid configuration: shutdownGracePeriod {{1ms}} {SHORT}"]),
    (
        GracePeriods(total=-SECOND, critical=-SECOND),
        [
            f"invalid configuration: shutdownGracePeriod {{-1s}} {SHORT}",
            f"invalid configuration: shutdownGracePeriodCriticalPods {{-1s}} {SHORT}",
        ],
    ),
    (
        GracePeriods(total=-SECOND),
        [
            CRITICAL_MOST % ("0s", "-1s"),
            f"invalid configuration: shutdownGracePeriod {{-1s}} {SHORT}",
        ],
    ),
    (
        GracePeriods(total=SECOND, critical=MS),
        [f"invalid configuration: shutdownGracePeriodCriticalPods {{1ms}} {SHORT}"],
    ),
    (
        GracePeriods(total=999_999_999, critical=1_500),
        [
            f"invalid configuration: shutdownGracePeriod {{999.999999ms}} {SHORT}",
            f"invalid configuration: shutdownGracePeriodCriticalPods {{1.5µs}} {SHORT}",
        ],
    ),
    (GracePeriods(total=SECOND, graceful_gate=False), [GATE]),
    (GracePeriods(critical=SECOND, graceful_gate=False), [GATE]),  # the first rule needs the gate
    (GracePeriods(total=MS, graceful_gate=False), [GATE]),
    (GracePeriods(total=-SECOND, graceful_gate=False), []),
    (GracePeriods(graceful_gate=False), []),
    (GracePeriods(by_priority=ITEMS, graceful_gate=False), []),
    (GracePeriods(total=SECOND, by_priority=ITEMS), [BOTH]),
    (GracePeriods(total=SECOND, critical=SECOND, by_priority=ITEMS), [BOTH]),
    (GracePeriods(critical=SECOND, by_priority=ITEMS), [CRITICAL_MOST % ("1s", "0s"), BOTH]),
    (GracePeriods(total=SECOND, by_priority=ITEMS, graceful_gate=False), [GATE, BOTH]),
    (GracePeriods(by_priority=ITEMS, priority_gate=False), [PRIORITY_GATE]),
    (GracePeriods(total=SECOND, by_priority=ITEMS, priority_gate=False), [PRIORITY_GATE]),
    (
        GracePeriods(total=MS, critical=2 * MS, by_priority=ITEMS, graceful_gate=False, priority_gate=False),
        [
            GATE,
            PRIORITY_GATE,
        ],
    ),
    (
        GracePeriods(total=MS, critical=2 * MS, by_priority=ITEMS, priority_gate=False),
        [
            CRITICAL_MOST % ("2ms", "1ms"),
            f"invalid configuration: shutdownGracePeriod {{1ms}} {SHORT}",
            f"invalid configuration: shutdownGracePeriodCriticalPods {{2ms}} {SHORT}",
            PRIORITY_GATE,
        ],
    ),
]


@pytest.mark.parametrize(("periods", "violations"), KUBELET, ids=range(len(KUBELET)))
def test_the_kubelets_rules_in_its_words(periods, violations):
    assert config_rules.kubelet_violations(periods) == violations


@pytest.mark.parametrize(
    "periods",
    [
        GracePeriods(total=None, critical=10 * SECOND),
        GracePeriods(total=10 * SECOND, critical=None),
        GracePeriods(total=SECOND, critical=2 * SECOND, graceful_gate=None),
        GracePeriods(total=SECOND, by_priority=ITEMS, priority_gate=None),
        GracePeriods(total=None, by_priority=ITEMS),
    ],
)
def test_no_rule_is_tried_on_what_could_not_be_read(periods):
    assert config_rules.kubelet_violations(periods) == []


def items(*pairs):
    return GracePeriods(
        by_priority=tuple(PriorityItem(priority=priority, seconds=seconds) for priority, seconds in pairs)
    )


def test_negative_seconds_and_duplicate_priorities():
    at = "shutdownGracePeriodByPodPriority"
    assert config_rules.own_errors(items((0, 10), (5, -1), (0, 10), (7, 1), (0, 3), (None, None), (None, None))) == [
        f"{at}[1].shutdownGracePeriodSeconds: -1: must not be negative",
        f"{at}[2].priority: 0: must be unique, see {at}[0]",
        f"{at}[4].priority: 0: must be unique, see {at}[0]",
    ]


def test_zero_seconds():
    assert config_rules.own_concerns(items((0, 10), (5, 0), (6, None))) == [
        (
            "shutdownGracePeriodByPodPriority[1].shutdownGracePeriodSeconds: 0: must be at least 1, or the group's pods "
            "get no time"
        )
    ]


def test_a_sum_that_goes_int64_of_nanoseconds_cannot_hold():
    most = (2**63 - 1) // SECOND
    assert config_rules.own_concerns(items((0, most - 1), (5, 1))) == []
    assert config_rules.own_concerns(items((0, most), (5, 1))) == [
        (
            "shutdownGracePeriodByPodPriority: 9223372037: the sum of all seconds must be at most 9223372036, "
            "or the kubelet's int64 overflows"
        )
    ]


WARNINGS = [
    (GracePeriods(), []),
    (GracePeriods(total=30 * SECOND, critical=10 * SECOND), []),
    (items((0, 10), (2_000_000_000, 10)), []),
    (items((-10, 10)), []),
    (
        items((100, 10), (50, 10)),
        [
            (
                "shutdownGracePeriodByPodPriority: no group at or below priority 0: pods below 50 end with the group of "
                "priority 50"
            )
        ],
    ),
    (
        GracePeriods(total=30 * SECOND),
        ["shutdownGracePeriodCriticalPods: 0s: pods of priority 2000000000 and above get no time to end in"],
    ),
    (
        GracePeriods(total=30 * SECOND, critical=30 * SECOND),
        [
            (
                "shutdownGracePeriodCriticalPods: 30s: leaves no whole second of shutdownGracePeriod 30s: pods below priority "
                "2000000000 get no time to end in"
            )
        ],
    ),
    (
        GracePeriods(by_priority=ITEMS, graceful_gate=False),
        ["featureGates.GracefulNodeShutdown: false: shutdownGracePeriodByPodPriority has no effect"],
    ),
    (GracePeriods(graceful_gate=False), []),
]


@pytest.mark.parametrize(("periods", "warnings"), WARNINGS, ids=range(len(WARNINGS)))
def test_what_is_valid_and_hardly_meant(periods, warnings):
    assert config_rules.config_warnings(periods) == warnings
