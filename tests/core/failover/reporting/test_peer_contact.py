"""That other nodes still hear one, as people are told of it: by ``lastcall failover explain``, and by the page ``/failover``."""

import pytest
from support.failover.explain_command import CLUSTER, document, machine, policy
from support.failover.snapshots import lease

from lastcall.failover.evidence.facts import Boot, LeaseSeen, PeerHeard
from lastcall.failover.reporting.peer_contact import recent_peer_contact
from lastcall.model.watchdog_peer_reports import WITHIN, PeerReport, to_annotations

BOOT = Boot(id="b1", system_uuid="m", since=0.0)


def sign(at, *, peer="n2", boot="b1"):
    return PeerHeard(boot_id=boot, peer=peer, question=1, at=at)


@pytest.mark.parametrize(
    ("boot", "facts", "said"),
    [
        (BOOT, [sign(97.0), sign(90.0, peer="n3")], "node n2 heard it 3s ago"),
        (BOOT, [sign(100.0 - WITHIN)], ""),
        (BOOT, [sign(99.0, boot="b0")], ""),
        (BOOT, [LeaseSeen(boot_id="b1", at=99.0)], ""),
        (BOOT, [], ""),
        (None, [sign(99.0)], ""),
    ],
)
def test_who_hears_it_is_told_for_a_minute(boot, facts, said):
    assert recent_peer_contact(boot, facts, 100.0) == said


def agents(name, seconds, **heard):
    """The Lease of a node's agent, renewed so many seconds ago."""
    found = lease(name, seconds)
    said = {node: PeerReport(boot_id=boot, asked=1, ago=ago) for node, (boot, ago) in heard.items()}
    found["metadata"] = {"name": name, "namespace": "lastcall-nodes", "annotations": to_annotations(said, {})}
    return found


def known(*more):
    return document("n1", machine("n1", "Unknown"), *CLUSTER[1:], policy(), *more)["known"][0]


def test_explain_tells_who_hears_it_by_the_clock_by_which_he_has_written():
    assert known() == known(agents("n2", 2), agents("n3", 2, n4=("b-1", 1.0)))
    told = known(agents("n2", 2, n1=("b-1", 1.5)), agents("n3", 9, n1=("b-1", 1.0)))
    assert told.startswith("boot b-1 is ALIVE: node n2 heard it 3s ago")
    assert known(agents("n2", 2, n1=("another", 1.5))) == known()


def test_to_explain_nothing_was_heard_in_the_future():
    assert "node n2 heard it 1s ago" in known(agents("n2", -500, n1=("b-1", 1.0)))
