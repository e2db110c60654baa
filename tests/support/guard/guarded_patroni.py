"""Three pods of Patroni with PostgreSQL, and three of their etcd, on three nodes of a lab, with or without a guard."""

import json
import os
import pwd
import shutil
import tempfile
import urllib.request
from contextlib import suppress
from pathlib import Path

from support.guard import patroni_set
from support.guard.guarded_lab import GuardedLab, guard_policy
from support.guard.patroni_servers import why_not
from support.guard.postgres_client import PostgresWriter

__all__ = ["GuardedPatroni", "why_not"]


class GuardedPatroni(GuardedLab):
    """Those of ``patroni_set``. A replica that lacks more than ``most_lag`` bytes never takes over by itself."""

    name = "patroni"

    def __init__(self, directory, *, guarded, most_lag=patroni_set.MOST_LAG):
        super().__init__(directory, guarded=guarded)
        self.shared = Path(tempfile.mkdtemp(prefix="patroni-"))  # pytest's own is closed to other users
        self.peers = self.shared / "peers"
        self.peers.mkdir()
        (self.shared / "patroni.json").write_text(json.dumps(patroni_set.configuration(most_lag=most_lag)))
        self._user = None
        if os.getuid() == 0:
            self._user = pwd.getpwnam("postgres").pw_uid
            for path in (self.shared, self.peers):
                os.chown(path, self._user, -1)

    def start(self):
        """Both StatefulSets at once: Patroni waits for etcd."""
        sets = [made(self.shared, user=self._user) for made in (patroni_set.etcd_set, patroni_set.patroni_set)]
        return super().start(*sets)

    def end(self):
        super().end()
        shutil.rmtree(self.shared, ignore_errors=True)

    def policies(self):
        return [guard_policy(name, name) for name in ("patroni", "etcd")]

    def is_whole(self):
        """Whether one leads, the others stream from it, and all of etcd is there."""
        if self.count_ready() < 3 or self.count_ready("etcd") < 3:
            return False
        with suppress(OSError, KeyError, ValueError):
            told = [self._ask(path.read_text().strip(), "patroni") for path in self.peers.iterdir()]
            leaders = [one for one in told if one["role"] in ("master", "primary") and one["state"] == "running"]
            senders = leaders[0].get("replication", []) if len(leaders) == 1 else []
            streaming = [one for one in senders if one["state"] == "streaming"]
            return len(told) == 3 and len(streaming) == 2 and len({one["timeline"] for one in told}) == 1
        return False

    def leading_pod(self):
        """The one that is primary, and has the leader's lock."""
        [leader] = [name for name, address in self._addresses().items() if self._leads(address)]
        return leader

    def client(self, size=1):
        """A client that writes rows of so many bytes."""
        return PostgresWriter(self.peers, size=size)

    def describe(self):
        """For a failure: what the members say."""
        said = {}
        for name, address in self._addresses().items():
            with suppress(OSError, ValueError):
                said[name] = self._ask(address, "cluster")
        return json.dumps(said) + self("get pods -o wide")

    def _addresses(self):
        return {path.name: path.read_text().strip() for path in sorted(self.peers.iterdir())}

    def _leads(self, address):
        with suppress(OSError):
            return bool(self._ask(address, "primary"))
        return False

    def _ask(self, address, path):
        with urllib.request.urlopen(f"http://{address}:8008/{path}", timeout=2) as answer:  # noqa: S310 - to loopback
            return json.load(answer)
