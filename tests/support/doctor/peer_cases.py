"""What the doctor finds of ``watchdog.peers``, and what it is to make of it."""

import msgspec

from lastcall.doctor.facts import AttemptResult, HostFile, PeerFacts, UnknownFact
from lastcall.doctor.finding import CheckVerdict
from lastcall.model.watchdog_lease import WatchdogPromise
from lastcall.model.watchdog_peers import PeerTerms

OK, WARNING, FAILURE, UNKNOWN = CheckVerdict.OK, CheckVerdict.WARNING, CheckVerdict.FAILURE, CheckVerdict.UNKNOWN
WHY = UnknownFact(reason="nobody told")
FREE = AttemptResult(works=True, message="UDP 10.0.0.1 port 9468 is free")
TAKEN = AttemptResult(works=False, message="UDP 10.0.0.1 port 9468: Address already in use")
NODES = {f"n{number}": f"10.0.0.{number}" for number in (1, 2, 3, 4)}

CONFIG = HostFile(
    path="/etc/lastcall/agent.yaml",
    data=b"""
apiVersion: lastcall.dev/v1alpha1
kind: AgentConfiguration
shutdownGracePeriod: 30s
watchdog: {peers: {}}
""",
)
ALONE = msgspec.structs.replace(CONFIG, data=CONFIG.data.replace(b"peers: {}", b""))

ASKS = WatchdogPromise(
    boot_id="b",
    armed=True,
    lease_seconds=60,
    pet_seconds=5,
    timeout_seconds=15,
    drift=0.01,
    peers=PeerTerms(nodes="f", calm="c"),
)
ASKS_NOBODY = msgspec.structs.replace(ASKS, peers=None)
UNARMED = WatchdogPromise(boot_id="b", why="/dev/watchdog0 is held by another program")
UNBOUND = msgspec.structs.replace(ASKS, lease_seconds=1)
"""No bound follows from it."""

HELD = PeerFacts(nodes=NODES, keys=(64,), promises=dict.fromkeys(NODES, ASKS), here={"n1": TAKEN}, host="n1")
"""All is well, and this node's agent has the port."""

ASKED = {"config": CONFIG, "peers": HELD, "agent": 900}


def found(**changes):
    return {**ASKED, "peers": msgspec.structs.replace(HELD, **changes)}


def no_agent(**changes):
    return {**found(**{"here": {"n1": FREE}, **changes}), "agent": None}


def said(**promises):
    return found(promises={**HELD.promises, **promises})


_TABLE = [
    # what is different, verdict, what the message or the fix says
    ({}, OK, "the configuration asks for none"),
    ({**ASKED, "config": ALONE}, OK, "the configuration asks for none"),
    ({**ASKED, "config": WHY}, UNKNOWN, "without a configuration"),
    ({**ASKED, "peers": None}, UNKNOWN, "the cluster was not asked; give --kubeconfig"),
    ({**ASKED, "peers": WHY}, UNKNOWN, "nobody told"),
    (ASKED, OK, "4 of all 4 nodes say in their Leases that they ask each other; the agent has UDP port 9468"),
    (no_agent(), OK, "the agent can bind UDP port 9468"),
    ({**ASKED, "agent": 0}, OK, "the agent has UDP port 9468"),
    # the key
    (found(keys=()), FAILURE, "lastcall-watchdog-peers is missing, or has no key; kubectl -n lastcall-system create"),
    (found(keys=(64, 31)), FAILURE, "a key of 31 bytes is too short; give it one of 32 bytes"),
    (found(keys=(32,)), OK, "4 of all 4"),
    (found(keys=WHY), UNKNOWN, "not known: nobody told"),
    # which node this is, and its address
    (found(here={}), FAILURE, "of Node n1, 10.0.0.1, is none of this machine's"),
    (found(here={}, nodes={**NODES, "n1": ""}), FAILURE, "Node n1 has no internal address"),
    (found(here={}, host="other"), UNKNOWN, "which Node this machine is"),
    (found(host="other"), OK, "the agent has UDP port 9468"),
    (found(here={"n1": TAKEN, "n2": TAKEN}, host="other"), UNKNOWN, "none, or more than one"),
    (found(here={"n2": FREE, "n1": TAKEN}), OK, "the agent has UDP port 9468"),
    (found(nodes=WHY, here={}), UNKNOWN, "not known: nobody told"),
    # its port
    (no_agent(here={"n1": TAKEN}), FAILURE, "Address already in use, and no agent runs here; end the program"),
    ({**ASKED, "agent": WHY}, UNKNOWN, "whether that is the agent is not known: nobody told"),
    ({**no_agent(), "agent": WHY}, OK, "the agent can bind"),
    (found(here={"n1": FREE}), WARNING, "the agent runs, and does not hold the port; its log has the reason"),
    # what this node's agent says
    (said(n1=ASKS_NOBODY), WARNING, "its Lease lastcall-nodes/n1 promises nothing by peers; its log has the reason"),
    (said(n1=UNARMED), WARNING, "promises nothing by peers (/dev/watchdog0 is held by another program)"),
    (said(n1=UNBOUND), WARNING, "promises nothing by peers"),
    (no_agent(promises={**HELD.promises, "n1": UNARMED}), OK, "3 of all 4 nodes"),
    (found(promises=WHY), UNKNOWN, "not known: nobody told"),
    # how many do it
    (said(n2=ASKS_NOBODY), OK, "3 of all 4 nodes"),
    (said(n2=ASKS_NOBODY, n3=UNARMED), WARNING, "only 2 of all 4 nodes say in their Leases"),
    (said(n2=ASKS_NOBODY, n3=UNBOUND), WARNING, "have more than half of all nodes, control plane included"),
    (found(promises={"n1": ASKS, "gone-1": ASKS, "gone-2": ASKS}), WARNING, "only 1 of all 4 nodes"),
    (found(promises={"n1": ASKS, "n2": ASKS}, nodes=dict(list(NODES.items())[:3])), OK, "2 of all 3 nodes"),
]

PEERS = [("watchdog-peers", *row) for row in _TABLE]
