"""Bugs in what follows from leases on shared storage, and in what an agent says of its own."""

from planted.bug import Bug

LEASES = "failover/knowing/storage_leases.py"
FOUND = ("tests/core/test_failover_storage_leases.py", "tests/core/test_failover_storage_leases_properties.py")
TOLD = ("tests/core/test_storage_telling.py",)
WORDS = ("tests/core/test_sanlock_words.py",)

BUGS = [
    Bug(
        "a reader that reads the storage no more goes on counting",
        LEASES,
        "return self.host.renewed_ago - self.host.checked_ago - self.interval - SLACK",
        "return self.host.renewed_ago - self.interval - SLACK",
        FOUND,
    ),
    Bug(
        "a lease that the holder had before it began anew is its lease",
        LEASES,
        "lease = (record.host_id, record.generation, record.owner)",
        "lease = (record.host_id, host.generation, record.owner)",
        FOUND,
    ),
    Bug(
        "a lockspace of the same name with another owner is the same",
        LEASES,
        "lease = (record.host_id, record.generation, record.owner)",
        "lease = (record.host_id, record.generation, host.owner)",
        FOUND,
    ),
    Bug(
        "who has read less than the holder itself is believed",
        LEASES,
        "if same(record, one.host) and one.host.timestamp >= record.timestamp]",
        "if same(record, one.host)]",
        FOUND,
    ),
    Bug(
        "who has read an earlier renewal than another is believed",
        LEASES,
        "last = [one for one in own if one.host.timestamp == newest]",
        "last = [one for one in own if newest]",
        FOUND,
    ),
    Bug(
        "what one boot has said of its lease speaks of the next",
        LEASES,
        "if record.boot_id != boot.id or not record.lockspace:",
        "if not record.lockspace:",
        FOUND,
    ),
    Bug(
        "a reading is as young as the write in which it stands",
        LEASES,
        "        if record == before:\n            return ()\n",
        "",
        FOUND,
    ),
    Bug(
        "what arrives last is taken for what was said last",
        LEASES,
        "if revision < self._revisions.get(node, 0):",
        "if revision < 0:",
        FOUND,
    ),
    Bug(
        "a lease that two nodes say they hold counts",
        LEASES,
        "if other != node):",
        "if other == node and record is None):",
        FOUND,
    ),
    Bug(
        "a machine is taken for reset although sanlock lets go of the watchdog",
        "storage/record.py",
        "if not found.used:",
        "if False:",
        TOLD,
    ),
    Bug(
        "a machine is taken for reset that has no watchdog",
        "storage/record.py",
        "if not found.watchdog:",
        "if False:",
        TOLD,
    ),
    Bug(
        "ids that were never given back hide the hosts that run",
        "storage/record.py",
        "if one.renewed_ago < _LONG][",
        "][",
        TOLD,
    ),
    Bug(
        "a write that arrives after it was taken back stands for ever",
        "storage/telling.py",
        "    await clock.sleep(AGAIN)\n    await _cleared(word, clock)\n",
        "",
        TOLD,
    ),
    Bug(
        "a lease that was given back is one that is not renewed",
        "adapters/sanlock_words.py",
        'if one.values.get("owner_name") and one.number("timestamp")]',
        'if one.values.get("owner_name")]',
        WORDS,
    ),
]
