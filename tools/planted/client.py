"""Bugs of the Kubernetes client, and of the election of a leader."""

from planted.bug import Bug

RULES = ("tests/core/test_leadership.py",)
ELECTION = ("tests/adapters/test_kube_election.py", "tests/adapters/test_kube_election_weather.py")
WATCHING = ("tests/adapters/test_kube_watching.py",)
UNREAD = ("tests/adapters/test_kube_watching_unread.py", "tests/core/test_failover_nulls.py")
HTTP = ("tests/adapters/test_kube_http.py", "tests/adapters/test_kube_https.py")
ACCESS = ("tests/adapters/test_kubeconfig.py",)

BUGS = [
    Bug(
        "a leader's time begins with the answer to its renewal",
        "adapters/kube/election.py",
        "self._until = sent + self._terms.renew",
        "self._until = self._clock.boottime() + self._terms.renew",
        ELECTION,
    ),
    Bug(
        "who makes sure that he leads is content with a renewal from before",
        "adapters/kube/election.py",
        "self._until > asked + self._terms.renew:",
        "self._until > asked:",
        ELECTION,
    ),
    Bug(
        "a leader acts until its lease has run out",
        "adapters/kube/election.py",
        "self._until = sent + self._terms.renew",
        "self._until = sent + self._terms.lease",
        ELECTION,
    ),
    Bug(
        "a renewal does not begin the waiting of others anew",
        "model/leadership.py",
        "    if before and before.lease and lease and before.lease.metadata == lease.metadata:",
        "    if before:",
        (*RULES, *ELECTION),
    ),
    Bug(
        "a lease that was deleted is free at once",
        "model/leadership.py",
        "        return Step.MAKE",
        "        return Step.ACQUIRE",
        ELECTION,
    ),
    Bug(
        "a lease is taken whatever has become of it since it was read",
        "adapters/kube/election.py",
        '{"metadata": {"resourceVersion": lease.metadata.resource_version}, "spec": record}',
        '{"spec": record}',
        ELECTION,
    ),
    Bug(
        "a duration in the record that is shorter than one's own is believed",
        "model/leadership.py",
        "max(told or 0, terms.lease)",
        "(told or terms.lease)",
        RULES,
    ),
    Bug(
        "a leader whose lease another holds goes on until its time is over",
        "model/leadership.py",
        'if now < leading_until and holder in ("", VACANT, identity)',
        "if now < leading_until",
        (*RULES, *ELECTION),
    ),
    Bug(
        "the lease is not released at a clean stop",
        "adapters/kube/election.py",
        "            if self._asked:",
        "            if False:",
        ELECTION,
    ),
    Bug(
        "the lease is given up while the work still ends",
        "adapters/kube/election.py",
        "await cancel(working)  # renewals go on until it has ended",
        "await cancel(keeping, working)",
        ELECTION,
    ),
    Bug(
        "a live look takes a refused renewal for one",
        "adapters/kube/election.py",
        "return self._until >= begun + self._terms.renew",
        "return self.leads",
        ELECTION,
    ),
    Bug(
        "one attempt to renew may take all the time",
        "adapters/kube/election.py",
        "min(self._terms.renew / 2, left) if left > 0 else self._terms.renew / 2",
        "60.0",
        ELECTION,
    ),
    Bug(
        "after 410 only what is there is told",
        "adapters/kube/watching.py",
        "if key not in found or found[key].uid != known.uid",
        "if key in found and found[key].uid != known.uid",
        WATCHING,
    ),
    Bug(
        "an object that was replaced meanwhile is told as changed",
        "adapters/kube/watching.py",
        "if before is None or before.uid != now.uid:",
        "if before is None:",
        WATCHING,
    ),
    Bug(
        "bookmarks are not heeded",
        "adapters/kube/watching.py",
        "            self._revision = read(event.object, Meta).metadata.resource_version\n            return None",
        "            return None",
        WATCHING,
    ),
    Bug(
        "one object that cannot be read ends the watch of all",
        "adapters/kube/decoding.py",
        "        if not metadata.name:\n",
        "        if True:\n",
        UNREAD,
    ),
    Bug(
        "an object that cannot be read any more is gone",
        "adapters/kube/watching.py",
        "if before is None or (before.uid == now.uid and not deleted):",
        "if before is None:",
        UNREAD,
    ),
    Bug(
        "an object that was deleted stays as it was known, if its last word cannot be read",
        "adapters/kube/watching.py",
        "if before is None or (before.uid == now.uid and not deleted):",
        "if before is None or before.uid == now.uid:",
        UNREAD,
    ),
    Bug(
        "a time that is null makes a node one that cannot be read",
        "model/observed.py",
        '    heartbeat: str | None = msgspec.field(name="lastHeartbeatTime", default=None)\n',
        '    heartbeat: str = msgspec.field(name="lastHeartbeatTime", default="")\n',
        UNREAD,
    ),
    Bug(
        "who manages which field is kept with every object",
        "adapters/kube/decoding.py",
        '        said.pop("managedFields", None)\n',
        "",
        WATCHING,
    ),
    Bug(
        "a watch that is silent is waited for",
        "adapters/kube/watching.py",
        "async with timeout(self._inactivity):",
        "async with timeout(None):",
        WATCHING,
    ),
    Bug(
        "urgent requests wait with all others",
        "adapters/kube/http.py",
        "self.urgent = _Urgent(self, self._reserved)",
        "self.urgent = _Urgent(self, self._bulk)",
        HTTP,
    ),
    Bug(
        "a write that may have happened is sent again",
        "adapters/kube/http.py",
        'not fresh and method in ("GET", "HEAD") and connection.silent',
        "not fresh and connection.silent",
        HTTP,
    ),
    Bug(
        "each request that is refused makes the plugin be asked again",
        "adapters/kube/exec_plugin.py",
        "        if self._credential is credential:\n            self._credential = None",
        "        self._credential = None",
        ACCESS,
    ),
    Bug(
        "a pod's token is read once",
        "adapters/kube/credentials.py",
        "if self._read is None or now - self._read_at > FRESH_SECONDS:",
        "if self._read is None:",
        ACCESS,
    ),
]
