"""What is said of sleeps that hold SIGTERM for less than proxies need."""

import pytest
from support.drain.objects import owned_object, pod_object
from support.drain.plans import case_of, workload_object

from lastcall.drain.traffic.settle_estimate import SettleEstimate
from lastcall.drain.traffic.sleep_advice import has_added_sleep, list_sleep_notes
from lastcall.names import SETTLE_SECONDS, SLEEP_ADDED

LEARNT = SettleEstimate(4.2, "the kube-proxies of 3 nodes")
LABEL = "kubectl label namespace shop lastcall.dev/settle-seconds=5 --overwrite"
RESTART = "kubectl -n shop rollout restart statefulset/web"


def namespace(label):
    labels = {} if label is None else {SETTLE_SECONDS: label}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}}


def web(number=1, added="2", **annotations):
    said = {SLEEP_ADDED: added} if added is not None else {}
    return owned_object(
        f"web-{number}", namespace="shop", kind="StatefulSet", owner="web", annotations=said | annotations
    )


WORKLOAD = workload_object("StatefulSet", "web", namespace="shop")


@pytest.mark.parametrize(
    ("objects", "mend"),
    [
        ((namespace("2"), web(), WORKLOAD), f"{LABEL}; {RESTART}"),
        ((namespace("default"), web(), WORKLOAD), f"{LABEL}; {RESTART}"),
        ((namespace(None), web(), WORKLOAD), f"{LABEL}; {RESTART}"),
        ((web(), WORKLOAD), f"{LABEL}; {RESTART}"),
        ((namespace("5"), web(), WORKLOAD), RESTART),
        ((namespace("2"), web()), LABEL),
        ((namespace("2"), web(added="4"), web(2, added="9"), WORKLOAD), f"{LABEL}; {RESTART}"),
    ],
)
def test_what_is_to_do(objects, mend):
    case = case_of(*objects)
    assert has_added_sleep(case)
    [note] = list_sleep_notes(case, LEARNT)
    assert note.mend == mend


def test_the_shortest_sleep_is_named_and_where_the_time_is_from():
    [note] = list_sleep_notes(case_of(namespace("2"), web(1, "3"), web(2, "2"), web(3, "5")), LEARNT)
    assert note.text == (
        "namespace shop: SIGTERM of shop/web-1, shop/web-2 is held for 2 s, and proxies need 5 s"
        " (the kube-proxies of 3 nodes)"
    )


@pytest.mark.parametrize(
    "objects",
    [
        (namespace("5"), web(added="5")),
        (namespace("30"), web(added="30")),
        (namespace("2"), web(added=None)),
        (namespace("2"), web(added="nonsense")),
        (namespace("2"), web(**{SETTLE_SECONDS: "2"})),
        (namespace("2"), pod_object("job-1", namespace="shop", annotations={SLEEP_ADDED: "2"}, phase="Succeeded")),
    ],
)
def test_nothing_is_said_of_what_is_long_enough_or_meant(objects):
    assert [*list_sleep_notes(case_of(*objects, force=True), LEARNT)] == []
