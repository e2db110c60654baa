"""The rows of ``lastcall status``: what the API server proves of each node, and what an administrator should mend."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from lastcall import names
from lastcall.model.agent_standing import SILENT_SECONDS, AgentStanding, standing_annotations
from lastcall.model.node_shutdown_object import HANDED_OVER
from lastcall.model.node_standing_facts import AgentPod, NodeStandingFacts, RecordedShutdown, StandingNode
from lastcall.model.shutdown import ShutdownMode
from lastcall.report.formatting import format_age
from lastcall.report.node_status import ArmedState, node_status
from lastcall.report.node_status_table import problems_text, table_cells

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)


def standing(ago=10.0, **fields):
    known = {
        "armed": True,
        "mode": ShutdownMode.ENFORCE,
        "message": "armed: 30s",
        "requested_seconds": 30.0,
        "granted_seconds": 60.0,
        "boot_id": "b2",
        "version": "1",
        "reported": NOW - timedelta(seconds=ago),
    }
    return AgentStanding(**known | fields)


def node(says=None, *, ready="True", boot="b2", cordoned=False, conditions=(), **annotations):
    known = dict(standing_annotations(says)) if says else {}
    known |= {getattr(names, name): text for name, text in annotations.items()}
    document = {
        "metadata": {"name": "n1", "annotations": known},
        "spec": {"unschedulable": cordoned},
        "status": {
            "nodeInfo": {"bootID": boot},
            "conditions": [
                *([{"type": "Ready", "status": ready}] if ready else []),
                *({"type": kind, "status": "True", "message": "m"} for kind in conditions),
            ],
        },
    }
    return msgspec.convert(document, StandingNode)


def agent(uid="u", ready="True"):
    document = {
        "metadata": {"name": "agent-x", "uid": uid},
        "spec": {"nodeName": "n1"},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }
    return msgspec.convert(document, AgentPod)


def shutdown(boot="b1", notes=(), pods=(), **status):
    known = {
        "state": "Returned",
        "outcome": "Completed",
        "startTime": "2026-01-02T09:00:00Z",
        "deadlineTime": "2026-01-02T09:01:00Z",
        "returnedTime": "2026-01-02T09:02:00Z",
        "podsEnded": "2/2",
        "notes": [{"message": text} for text in notes],
        "pods": [{"namespace": "d", "name": name, "outcome": how, "cutShort": how == "Killed"} for name, how in pods],
    }
    given = {key: value for key, value in (known | status).items() if value is not None}
    document = {"metadata": {"name": "n1"}, "spec": {"bootID": boot, "nodeName": "n1"}, "status": given}
    return msgspec.convert(document, RecordedShutdown)


def going_down(state, outcome="Completed"):
    """One of this boot that began half a minute ago."""
    return shutdown(boot="b2", state=state, outcome=outcome, startTime="2026-01-02T11:59:30Z", returnedTime=None)


def row(node, agents=(), last=None):
    return node_status(NodeStandingFacts(node=node, agents=agents, shutdown=last), NOW)


@pytest.mark.parametrize(
    ("facts", "armed", "reason"),
    [
        ((node(standing(pod_uid="u")), (agent(),)), "True", ""),
        ((node(standing()),), "True", ""),
        ((node(standing(pod_uid="u")), None), "True", ""),
        ((node(standing(armed=False, message="not armed: no logind")),), "False", "not armed: no logind"),
        ((node(standing(armed=False, message="no"), ready="False"),), "False", "no"),
        ((node(standing(boot_id="b1")),), "Unknown", "its agent has not reported since the boot"),
        ((node(standing(boot_id="b1"), boot=""),), "True", ""),
        ((node(standing(), ready="Unknown"),), "Unknown", "the node does not answer"),
        ((node(standing(), ready=""),), "Unknown", "the node does not answer"),
        ((node(standing(ago=SILENT_SECONDS + 1)),), "Unknown", "its agent last reported 15m1s ago"),
        (
            (node(standing(ago=-SILENT_SECONDS - 1)),),
            "Unknown",
            "its agent last reported in the future: its clock differs",
        ),
        ((node(standing(pod_uid="u")), (agent("other"),)), "Unknown", "its agent's pod is gone"),
        ((node(standing(pod_uid="u")), (agent(ready="False"),)), "Unknown", "its agent agent-x is not ready"),
        ((node(standing(pod_uid="u", armed=False, message="no")), (agent(ready="False"),)), "False", "no"),
        ((node(standing(pod_uid="u"), ready="False"), (agent(ready="False"),)), "True", ""),
        ((node(),), "Unknown", "no agent is known: there is neither a pod nor a report of one"),
        ((node(), None), "Unknown", "no agent has reported, and agents' pods may not be read"),
        ((node(), (agent(ready="False"),)), "Unknown", "its agent agent-x is not ready"),
        (
            (node(), (agent(),)),
            "Unknown",
            "its agent agent-x does not report: it is older, or may not write its Node",
        ),
        ((node(standing(ago=60)), (), going_down("Announced")), "Unknown", "the node shuts down"),
        ((node(standing(ago=60), ready="False"), (), going_down("Ending")), "Unknown", "the node shuts down"),
        ((node(standing(ago=60), ready="False"), (), going_down("Ended")), "Unknown", "the node has shut down"),
        ((node(standing(ago=10)), (), going_down("Ended")), "True", ""),
        ((node(standing(ago=60)), (), going_down("Cancelled", outcome="Cancelled")), "True", ""),
        ((node(standing(ago=60)), (), going_down("Returned")), "True", ""),
        ((node(AGENT_STANDING="{"),), "Unknown", "no agent is known: there is neither a pod nor a report of one"),
    ],
)
def test_an_agent_is_armed_only_as_long_as_that_is_known(facts, armed, reason):
    found = row(*facts)
    assert (found.armed, found.reason) == (ArmedState(armed), reason)
    assert list(found.problems) == ([reason] if reason else [])
    assert (found.requested_seconds is None) == (found.armed is ArmedState.UNKNOWN), "nor are its seconds"


MARK = '{"bootId":"b1","cordoned":true}'


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        ((node(standing(granted_seconds=5.0)),), "logind grants 5s of 30s"),
        ((node(standing(kubelet_lock=True)),), "the kubelet holds a delay lock: it ends the pods, too"),
        ((node(standing(lost_identities=("own",))),), "its identity for the API server does not suffice: own"),
        ((node(standing(), cordoned=True, NODE_SHUTDOWN_MARK=MARK),), "cordoned by a shutdown"),
        (
            (node(standing(), cordoned=True, NODE_SHUTDOWN_MARK=MARK.replace("true", "false")),),
            "cordoned, and marked by a shutdown",
        ),
        ((node(standing(), cordoned=True, WARNING_CORDON="true"),), "cordoned, since a source of deadlines warns"),
        ((node(standing(), conditions=[names.SOURCES_FAIL]),), "a source of deadlines does not answer: m"),
        ((node(standing(), conditions=[names.INTERRUPTION_LIKELY]),), "an interruption is likely: m"),
        (
            (node(standing()), (), shutdown(returnedTime=None, outcome="Interrupted")),
            "the record of its last shutdown is incomplete: its return is missing",
        ),
        (
            (node(standing()), (), shutdown(boot="b2", returnedTime=None, outcome="Running", state="Ending")),
            "the record of its last shutdown is incomplete: its end is missing",
        ),
        (
            (node(standing()), (), shutdown("b2", [f"{HANDED_OVER}: d/a, d/b"], outcome="Cancelled")),
            "2 pods handed over to the kubelet: d/a, d/b",
        ),
    ],
)
def test_each_problem(facts, problem):
    assert row(*facts).problems == (problem,)
    assert row(*facts).armed is ArmedState.TRUE


@pytest.mark.parametrize(
    "facts",
    [
        (node(standing()), (), shutdown()),
        (node(standing(granted_seconds=None)),),
        (node(standing(), cordoned=True),),
        (node(standing(), NODE_SHUTDOWN_MARK=MARK),),
        (node(standing(), cordoned=True, NODE_SHUTDOWN_MARK=MARK, conditions=[names.SHUTDOWN_IN_PROGRESS]),),
        (node(standing()), (), shutdown(outcome="Cancelled", state="Cancelled", returnedTime=None)),
        (node(standing()), (), shutdown(boot="b2", outcome="Cancelled", returnedTime=None)),
        (node(standing()), (), shutdown(notes=[f"{HANDED_OVER}: d/a"], outcome="Cancelled")),
        (node(standing(), ready="False"), (), shutdown(returnedTime=None)),
        (
            node(standing()),
            (),
            shutdown(boot="b2", returnedTime=None, outcome="Running", deadlineTime="2026-01-02T12:00:00Z"),
        ),
    ],
)
def test_what_is_no_problem(facts):
    assert row(*facts).problems == ()


def test_the_last_shutdown():
    pods = [("a", "Graceful"), ("b", "Killed"), ("c", "Unconfirmed")]
    last = row(node(standing()), (), shutdown(pods=pods, notes=[f"{HANDED_OVER}: d/a"])).last_shutdown
    assert (last.killed, last.cut_short, last.handed_over) == (("d/b", "d/c"), ("d/b",), ("d/a",))


def test_the_cells():
    facts = node(standing(pod_uid="u")), (agent(),), shutdown(pods=[("b", "Killed")])
    cells = table_cells(row(*facts), NOW, wide=True)
    assert cells == [
        *("n1", "True", "Enforce", "30s", "1m0s", "Completed (3h ago)", "1"),
        *("agent-x", "1", "10s ago"),
    ]
    assert problems_text(row(*facts)) == "<none>"
    lost = row(node(), (), None)
    assert table_cells(lost, NOW) == ["n1", "Unknown", *["<unknown>"] * 3, *["<none>"] * 2]
    assert table_cells(row(node(standing(granted_seconds=None))), NOW)[4] == "unlimited"
    going = shutdown(boot="b2", returnedTime=None, outcome="Running", state="Ending", startTime="2026-01-02T11:59:55Z")
    assert table_cells(row(node(standing()), (), going), NOW)[5] == "Ending (5s ago)"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (450, "7m30s"), (600, "10m"), (10799, "179m"), (10800, "3h")]
    + [(12600, "3h30m"), (28800, "8h"), (172800, "2d"), (190800, "2d5h"), (691200, "8d"), (-5, "0s")],
)
def test_ages_are_kubectls(seconds, text):
    assert format_age(seconds) == text
