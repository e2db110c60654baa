"""The remarks of ``lastcall failover plan`` beside its plan: facts missing in the state, and a closed output."""

import shlex
import subprocess
import sys

import pytest
from click.testing import CliRunner
from support.failover.snapshots import NOW, attachment, lease, node, out, pod, state, volume

from lastcall.cli.failover import command
from lastcall.failover.upstream.plan import build_plan
from lastcall.failover.upstream.plan_doubts import list_doubts
from lastcall.failover.upstream.plan_rules import PlanRules
from lastcall.model.state_file import read_state

READY, GOING = node("n2"), pod("a", "n1", terminating=True)
NO_LEASE = "no Lease for: n1: when they were last heard of is not known"
OLD = "every sign of life in it is older than"


def run(*objects, options=("--now", "2026-11-21T12:00:00Z")):
    result = CliRunner().invoke(command, ["plan", "--state", "-", *options], input=state(*objects))
    assert result.exit_code == 0
    return result


def doubtful(*objects, given=True, **rules):
    snapshot = read_state(state(*objects), "s").snapshot
    return list(list_doubts(build_plan(snapshot, PlanRules(**rules), NOW), snapshot, NOW, given=given))


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ([out("n1"), GOING], [NO_LEASE]),
        ([out("n1"), pod("a", "n1")], [NO_LEASE]),
        ([out("n1"), volume("v"), attachment("va", "v", "n1")], [NO_LEASE]),
        ([out("n1", heard=900), GOING], [NO_LEASE]),
        ([out("n1", heard=49), GOING], []),
        ([out("n1"), GOING, lease("n1", 90)], []),
        ([out("n1"), pod("a", "n2")], []),
        ([out("n1", "True"), GOING], []),
        ([node("n1", "Unknown"), GOING], []),
    ],
)
def test_a_silent_node_without_a_lease_is_named_where_something_is_forced_from_it(objects, said):
    assert doubtful(READY, *objects) == said


def test_also_where_the_time_alone_lets_its_volumes_go():
    objects = [node("n1", "Unknown"), volume("v"), attachment("va", "v", "n1")]
    assert doubtful(*objects, detach_timeout_elapsed=True) == [NO_LEASE]
    assert doubtful(*objects) == []


@pytest.mark.parametrize(
    ("objects", "given", "said"),
    [
        ([READY, lease("n2", 49)], True, None),
        ([READY, lease("n2", 50)], True, "50s: is --now right?"),
        ([READY, lease("n2", 90), node("n1", "Unknown"), lease("n1", 3)], True, None),
        ([READY, lease("n2", -90)], True, None),
        ([node("n2", heard=359)], True, None),
        ([node("n2", heard=360)], True, "6m0s: is --now right?"),
        ([READY], True, None),
        ([node("n1", "Unknown"), lease("n1", 900)], True, None),
        ([READY, lease("n2", 49)], False, None),
        ([READY, lease("n2", 50)], False, "50s: give --now, the time at which it was taken"),
        ([node("n1", "Unknown"), lease("n1", 900)], False, "give --now, the time at which it was taken"),
    ],
)
def test_a_state_of_another_time_is_told(objects, given, said):
    found = doubtful(*objects, given=given)
    assert len(found) == bool(said)
    assert not said or (found[0].startswith(OLD) and found[0].endswith(said))


def test_they_are_warnings_of_the_plan_by_lastcalls_rules():
    old = lease("n2", 3)
    old["spec"]["renewTime"] = "2020-01-31T12:00:00Z"
    told = run(out("n1"), GOING, READY, old, options=()).stderr.splitlines()
    assert told[0] == f"warning: standard input: {NO_LEASE}"
    assert told[1].startswith(f"warning: standard input: {OLD}")
    assert told[1].endswith("give --now, the time at which it was taken")
    assert run(out("n1"), GOING, READY, old).stderr.endswith("is --now right?\n")
    assert run(out("n1"), GOING, READY, old, options=["--upstream-rules"]).stderr == ""


def test_a_pod_that_is_evicted_and_may_not_be_forced_is_named_in_a_note(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    spared = pod("a", "n1", terminating=True, annotations={"lastcall.dev/failover": "Disabled"})
    note = "note: shop/a is evicted, but not deleted by force: node n1 is out of service, but the pod may not be forced"
    assert note in run(out("n1"), lease("n1", 90), spared).stdout
    assert "note: shop" not in run(out("n1"), lease("n1", 9), spared).stdout
    assert "note: shop" not in run(out("n1"), lease("n1", 90), GOING).stdout
    assert "note:" not in run(out("n1"), lease("n1", 90), spared, options=["--upstream-rules"]).stdout


# -- streams that are not there ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [("plan",), ("explain", "n1")])
@pytest.mark.parametrize(
    ("closed", "code", "says"),
    [
        ("<&-", 2, "lastcall: standard input: cannot be read: it is closed"),
        (">&-", 1, "lastcall: standard output is closed: the answer would be lost"),
    ],
)
def test_a_stream_that_is_closed(verb, closed, code, says, tmp_path):
    (tmp_path / "state").write_bytes(state(node("n1")))
    source = "-" if closed == "<&-" else str(tmp_path / "state")
    line = shlex.join([sys.executable, "-m", "lastcall", "failover", *verb, "--state", source])
    found = subprocess.run(["sh", "-c", f"{line} {closed}"], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr.strip()) == (code, says)
