"""Bugs of the watchdog: what is promised, petted and stopped, and what the controller makes of it."""

from planted.bug import Bug

PETTING = ("tests/core/test_watchdog_petting.py",)
KEEPER = ("tests/core/test_watchdog_keeper.py", "tests/core/test_watchdog_taken_back.py")
KILLED = ("tests/core/test_watchdog_killed.py",)
LIVES = (*KEEPER, *KILLED)
DEVICE = ("tests/contract/test_watchdog_device.py",)
SEEN = ("tests/core/test_watchdog_lease.py",)
WIRED = ("tests/adapters/test_wiring_watchdog.py",)

BUGS = [
    Bug(
        "a pet needs no renewal",
        "watchdog/petting.py",
        "return not standing.promised or now - standing.renewed < lease",
        "return True",
        LIVES,
    ),
    Bug(
        "a promise that was sent and not answered is none",
        "watchdog/petting.py",
        "promised=standing.promised or armed",
        "promised=standing.promised",
        PETTING,
    ),
    Bug(
        "what an earlier life has promised is not taken back before the device is opened",
        "watchdog/petting.py",
        "promised: bool = True",
        "promised: bool = False",
        LIVES,
    ),
    Bug(
        "the device is stopped before the promise is taken back",
        "watchdog/petting.py",
        "    if at.promised:\n",
        "    if at.promised and not at.open:\n",
        LIVES,
    ),
    Bug(
        "what an earlier life has left running is not stopped in a shutdown",
        "watchdog/petting.py",
        "(at.wanted and at.fit) or at.stray",
        "at.wanted and at.fit",
        LIVES,
    ),
    Bug(
        "a device that does not fit is petted at the usual pace",
        "watchdog/petting.py",
        "return pet if fit else min(pet, timeout / 3)",
        "return pet",
        (*PETTING, *KEEPER),
    ),
    Bug(
        "that nothing is promised is said once",
        "watchdog/keeper.py",
        "(self._reason != self._why() or self._long_ago)",
        "self._reason != self._why()",
        KEEPER,
    ),
    Bug(
        "clocks may be perfect",
        "model/watchdog.py",
        "LEAST_DRIFT, MOST_DRIFT = 0.001,",
        "LEAST_DRIFT, MOST_DRIFT = 0.0,",
        ("tests/core/test_config_watchdog.py",),
    ),
    Bug(
        "a renewal counts from its answer",
        "watchdog/keeper.py",
        "sent=sent, nodes=nodes)",
        "sent=self._clock.boottime(), nodes=nodes)",
        KEEPER,
    ),
    Bug(
        "the timeout that was asked for is taken for the driver's",
        "watchdog/keeper.py",
        "timeout=info.timeout, ",
        "",
        KEEPER,
    ),
    Bug(
        "a device that a crash disarms is armed",
        "watchdog/keeper.py",
        "survives_close=info.survives_close, ",
        "",
        KEEPER,
    ),
    Bug(
        "a shutdown does not take the promise back",
        "watchdog/keeper.py",
        "wanted=not self._held and self._leave_by is None",
        "wanted=self._leave_by is None",
        KEEPER,
    ),
    Bug(
        "writes of the Lease are not bound to a revision",
        "adapters/kube/watchdog_lease.py",
        '"resourceVersion": before.metadata.resource_version,',
        "",
        KEEPER,
    ),
    Bug(
        "a device that cannot be stopped is closed",
        "adapters/watchdog_device.py",
        "        if self._nowayout:\n            return False\n",
        "",
        DEVICE,
    ),
    Bug(
        "each pet allows the device to be stopped",
        "adapters/watchdog_device.py",
        'self._kernel.write(self._descriptor, b"\\0")',
        'self._kernel.write(self._descriptor, b"V")',
        DEVICE,
    ),
    Bug(
        "the agent does not say that the node goes down",
        "wiring.py",
        "going_down=status.state in (State.ENDING, State.LEAVING)",
        "going_down=False",
        WIRED,
    ),
    Bug(
        "a renewal is taken for the one before",
        "failover/knowing/armed.py",
        "before.renewed == renewed and ",
        "",
        (*SEEN, *KEEPER),
    ),
    Bug(
        "a Lease that says that nothing is armed is believed to promise something",
        "model/watchdog_lease.py",
        "if not self.armed or not self.boot_id",
        "if not self.boot_id",
        SEEN,
    ),
    Bug(
        "how many nodes were heard of at first need not be known",
        "failover/knowing/armed.py",
        "if earlier else []",
        "if earlier else contacts",
        SEEN,
    ),
    Bug(
        "the nodes that are heard of now are those that were heard of all the time",
        "failover/knowing/armed.py",
        "min((one.reachable for one in told), default=0)",
        "contacts[-1].reachable if contacts else 0",
        SEEN,
    ),
]
