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
        "return self.host.renewed_ago - self.host.looked_ago - SLACK",
        "return self.host.renewed_ago - SLACK",
        FOUND,
    ),
    Bug(
        "a look counts as of when it was noted",
        "adapters/sanlock_words.py",
        "looked_ago=max(0, now - looked),",
        'looked_ago=max(0, now - host.number("last_check")),',
        WORDS,
    ),
    Bug(
        "a lockspace that was lost is read from for ever",
        "adapters/sanlock_words.py",
        "others=() if lost else tuple(",
        "others=tuple(",
        WORDS,
    ),
    Bug(
        "a lockspace that was made anew is the one before",
        LEASES,
        "if not last or _went_back(every, min(one.first for one in last), newest):",
        "if not last:",
        FOUND,
    ),
    Bug(
        "a reader that lags behind hides every proof",
        LEASES,
        "return any(one.advanced and one.host",
        "return any(one.host",
        FOUND,
    ),
    Bug(
        "the Leases of nodes that are gone are believed",
        LEASES,
        "if one.reader != node and one.reader in nodes]",
        "if one.reader != node]",
        FOUND,
    ),
    Bug(
        "a proof is lost if the Leases are listed before the Nodes",
        LEASES,
        "max(boot.since + _MOMENT, *(one.at for one in last))",
        "max(one.at for one in last)",
        FOUND,
    ),
    Bug(
        "what a host reads at its first look has been renewed just then",
        LEASES,
        "(one.lived for one in last if one.advanced)",
        "(one.lived for one in last)",
        FOUND,
    ),
    Bug(
        "a renewal that was noted late makes a liar of a fence device",
        LEASES,
        "return self.renewed - 5 * self.interval - SLACK",
        "return self.renewed - self.interval - SLACK",
        FOUND,
    ),
    Bug(
        "a lease that the holder had before it began anew is its lease",
        LEASES,
        "return (record.host_id, record.generation, record.owner) ==",
        "return (record.host_id, host.generation, record.owner) ==",
        FOUND,
    ),
    Bug(
        "a lockspace of the same name with another owner is the same",
        LEASES,
        "return (record.host_id, record.generation, record.owner) ==",
        "return (record.host_id, record.generation, host.owner) ==",
        FOUND,
    ),
    Bug(
        "who has read less than the holder itself is believed",
        LEASES,
        "own = [one for one in every if one.host.timestamp >= record.timestamp]",
        "own = every",
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
        "if any(self._same_lease(record, other) for other in others):",
        "if False:",
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
        "if found.timestamp and found.host_id not in",
        "if found.host_id not in",
        WORDS,
    ),
    Bug(
        "to explain no lease on shared storage is known",
        "failover/telling/objects.py",
        "    if fact := storage.of(name, boot, nodes):\n        yield fact\n",
        "",
        ("tests/core/test_failover_explain_leases.py",),
    ),
    Bug(
        "explain knows of no watchdog, whatever an agent says of its own",
        "failover/telling/objects.py",
        "(_WATCHDOG if one == remarks.NO_WATCHDOG else one for one in found.reasons)",
        "found.reasons",
        ("tests/core/test_failover_explain_leases.py",),
    ),
]
