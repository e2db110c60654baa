"""Bugs of pets by agreement: what nodes report, what is counted, and what the controller makes of what they say of it."""

from planted.bug import Bug

AGREED = ("tests/core/test_watchdog_agreement.py",)
CALM = ("tests/core/test_failover_calm.py",)
TOGETHER = ("tests/core/test_watchdog_peers.py",)
MESSAGES = ("tests/core/test_watchdog_messages.py",)
REHEARSED = ("tests/core/test_simulation_watchdog.py",)
DOCTOR = ("tests/core/test_doctor.py",)

BUGS = [
    Bug(
        "half of the nodes agree",
        "watchdog/agreement.py",
        "all(2 * some > nodes for",
        "all(2 * some >= nodes for",
        (*AGREED, *TOGETHER),
    ),
    Bug(
        "what others have reported counts for ever",
        "watchdog/agreement.py",
        "if 0 <= now - asked < report",
        "if asked <= now",
        AGREED,
    ),
    Bug(
        "one of the sets that a Lease may name is enough",
        "watchdog/agreement.py",
        "pets=all(",
        "pets=any(",
        AGREED,
    ),
    Bug(
        "what a Lease said of others before is forgotten when something else is sent",
        "watchdog/petting.py",
        "(*standing.counted, nodes)",
        "(nodes,)",
        AGREED,
    ),
    Bug(
        "an agent that promises nothing reports that the API server is lost",
        "watchdog/petting.py",
        "return standing.promised and None not in",
        "return None not in",
        AGREED,
    ),
    Bug(
        "a node reports and goes on saying the same word",
        "watchdog/peers.py",
        "                self._calm = self._draw(NONCE).hex()  # before anybody can hear of it\n",
        "",
        TOGETHER,
    ),
    Bug(
        "a report counts from its answer",
        "watchdog/peers.py",
        "max(self._asked[nonce], ",
        "max(self._clock.boottime(), ",
        ("tests/core/test_watchdog_asking.py",),
    ),
    Bug(
        "a node may answer for another one",
        "watchdog/peers.py",
        "if nonce in self._asked and self._comes_from(name, sender)",
        "if nonce in self._asked and name in self._nodes",
        ("tests/core/test_watchdog_asking.py",),
    ),
    Bug(
        "messages are believed without a signature",
        "watchdog/messages.py",
        "    if not any(hmac.compare_digest(mac, _mac(body, key)) for key in keys):\n        return None\n",
        "",
        MESSAGES,
    ),
    Bug(
        "a write that was under way at the survey confirms it",
        "failover/knowing/calm.py",
        "CHAIN = 2",
        "CHAIN = 1",
        CALM,
    ),
    Bug(
        "the word is taken before it is known what stands there",
        "watchdog/keeper.py",
        "calm=self._peers.calm))",
        "calm=promise.peers.calm))",
        ("tests/core/test_watchdog_word.py",),
    ),
    Bug(
        "another word may confirm it",
        "failover/knowing/calm.py",
        "word.calm == calm and word",
        "word",
        CALM,
    ),
    Bug(
        "an agent whose promise was removed counts from the beginning",
        "adapters/kube/watchdog_lease.py",
        "max(self._highest, before.promise.sequence if before.promise else 0)",
        "before.promise.sequence if before.promise else 0",
        ("tests/core/test_watchdog_word.py",),
    ),
    Bug(
        "another word counts since the first one",
        "failover/knowing/calm.py",
        "same = before is not None and before.calm == promise.peers.calm",
        "same = before is not None",
        (*CALM, *TOGETHER),
    ),
    Bug(
        "fewer than half of the nodes are calm, and it counts",
        "failover/knowing/calm.py",
        "needed = (nodes + 1) // 2",
        "needed = nodes // 2",
        (*CALM, *TOGETHER),
    ),
    Bug(
        "a node that has come since counts for an agent that does not know it",
        "failover/knowing/calm.py",
        "if since <= number",
        "",
        (*CALM, *TOGETHER),
    ),
    Bug(
        "what nobody has confirmed counts",
        "failover/knowing/facts.py",
        "self.peers is None or (self.peers.until is not None and self.peers.until >= over)",
        "True",
        (*CALM, *TOGETHER),
    ),
    Bug(
        "reports of before are taken to have lapsed at once",
        "model/watchdog.py",
        "calm_since + self.report * (1 + self.drift)",
        "calm_since",
        CALM,
    ),
    Bug(
        "the bound holds as if nobody petted by agreement",
        "model/watchdog.py",
        "        if not self.peers:\n            return renewed + self.bound\n        if calm_since is None:\n            return None\n",
        "        if not self.peers or calm_since is None:\n            return renewed + self.bound\n",
        CALM,
    ),
    Bug(
        "the controller looks without a pause for what others have not confirmed yet",
        "failover/knowing/awaiting.py",
        "Awaited(text, None if confirming else last.over)",
        "Awaited(text, last.over)",
        CALM,
    ),
    Bug(
        "half of the nodes are enough for the doctor",
        "graceful/doctor_peers.py",
        "found.promises)) <= len(found.nodes)",
        "found.promises)) < len(found.nodes)",
        DOCTOR,
    ),
    Bug(
        "the doctor takes an agent that is armed for one that asks others",
        "graceful/doctor_peers.py",
        "promise and promise.peers and promise.settings",
        "promise and promise.settings",
        DOCTOR,
    ),
    Bug(
        "a port that the agent has is taken by another program",
        "graceful/doctor_peers.py",
        " and facts.agent is None:",
        ":",
        DOCTOR,
    ),
    Bug(
        "an address that can be bound is this machine's",
        "adapters/own_port.py",
        "probe.connect((address, _ANY))",
        "probe.bind((address, 0))",
        ("tests/adapters/test_cluster_facts.py",),
    ),
    Bug(
        "a machine of a rehearsal lives on when its watchdog fires",
        "lab/simulation/machine/watchdogs.py",
        'self._world.start(self._reset(), f"{self._name}: reset")',
        "self.device.switched_off()",
        REHEARSED,
    ),
    Bug(
        "a rehearsal's agent pets although its node goes down",
        "lab/simulation/machine/watchdogs.py",
        '"the node is going down" if status.state in (State.ENDING, State.LEAVING) else ""',
        '""',
        REHEARSED,
    ),
    Bug(
        "a reset mends a cable that was cut",
        "lab/power.py",
        "        if fault is not Switch.ON:\n            await self.turn(fault)\n",
        "",
        ("tests/core/test_lab_power.py", *REHEARSED),
    ),
]
