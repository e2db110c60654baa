"""Bugs of the watchdog: the promise that a machine resets itself."""

from planted.bug import Bug

BUGS = [
    Bug(
        "a pet needs no renewal",
        "watchdog/petting.py",
        "return not standing.promised or now - standing.renewed < lease",
        "return True",
        (
            "tests/core/test_watchdog_keeper.py",
            "tests/core/test_watchdog_taken_back.py",
            "tests/core/test_watchdog_killed.py",
        ),
    ),
    Bug(
        "a promise that was sent and not answered is none",
        "watchdog/petting.py",
        "promised=standing.promised or armed",
        "promised=standing.promised",
        ("tests/core/test_watchdog_petting.py",),
    ),
    Bug(
        "the device is stopped before the promise is taken back",
        "watchdog/petting.py",
        "    if at.promised:\n",
        "    if at.promised and not at.open:\n",
        (
            "tests/core/test_watchdog_keeper.py",
            "tests/core/test_watchdog_taken_back.py",
            "tests/core/test_watchdog_killed.py",
        ),
    ),
    Bug(
        "a renewal counts from its answer",
        "watchdog/keeper.py",
        "sent=sent, nodes=nodes)",
        "sent=self._clock.boottime(), nodes=nodes)",
        ("tests/core/test_watchdog_keeper.py", "tests/core/test_watchdog_taken_back.py"),
    ),
    Bug(
        "the timeout that was asked for is taken for the driver's",
        "watchdog/keeper.py",
        "timeout=info.timeout, ",
        "",
        ("tests/core/test_watchdog_keeper.py", "tests/core/test_watchdog_taken_back.py"),
    ),
    Bug(
        "a device that a crash disarms is armed",
        "watchdog/keeper.py",
        "survives_close=info.survives_close, ",
        "",
        ("tests/core/test_watchdog_keeper.py", "tests/core/test_watchdog_taken_back.py"),
    ),
    Bug(
        "a shutdown does not take the promise back",
        "watchdog/keeper.py",
        "wanted=not self._held and self._leave_by is None",
        "wanted=self._leave_by is None",
        ("tests/core/test_watchdog_keeper.py", "tests/core/test_watchdog_taken_back.py"),
    ),
    Bug(
        "writes of the Lease are not bound to a revision",
        "adapters/kube/watchdog_lease.py",
        '"resourceVersion": before.metadata.resource_version,',
        "",
        ("tests/core/test_watchdog_keeper.py", "tests/core/test_watchdog_taken_back.py"),
    ),
    Bug(
        "half of the nodes agree",
        "watchdog/agreement.py",
        "all(2 * some > nodes for",
        "all(2 * some >= nodes for",
        ("tests/core/test_watchdog_agreement.py", "tests/core/test_watchdog_peers.py"),
    ),
    Bug(
        "what others have reported counts for ever",
        "watchdog/agreement.py",
        "if 0 <= now - asked < report",
        "if asked <= now",
        ("tests/core/test_watchdog_agreement.py",),
    ),
    Bug(
        "a report counts from its answer",
        "watchdog/peers.py",
        "max(self._asked[nonce], ",
        "max(self._clock.boottime(), ",
        ("tests/core/test_watchdog_asking.py",),
    ),
    Bug(
        "messages are believed without a signature",
        "watchdog/messages.py",
        "    if not any(hmac.compare_digest(mac, _mac(body, key)) for key in keys):\n        return None\n",
        "",
        ("tests/core/test_watchdog_messages.py",),
    ),
    Bug(
        "fewer than half of the nodes are calm, and it counts",
        "failover/knowing/calm.py",
        "needed = (nodes + 1) // 2",
        "needed = nodes // 2",
        ("tests/core/test_failover_calm.py", "tests/core/test_watchdog_peers.py"),
    ),
    Bug(
        "what nobody has confirmed counts",
        "failover/knowing/facts.py",
        "self.peers is None or (self.peers.until is not None and self.peers.until >= over)",
        "True",
        ("tests/core/test_failover_calm.py", "tests/core/test_watchdog_peers.py"),
    ),
    Bug(
        "the bound holds as if nobody petted by agreement",
        "model/watchdog.py",
        "        if not self.peers:\n            return renewed + self.bound\n        if calm_since is None:\n            return None\n",
        "        if not self.peers or calm_since is None:\n            return renewed + self.bound\n",
        ("tests/core/test_failover_calm.py",),
    ),
]
