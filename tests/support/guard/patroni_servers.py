"""Three real Patroni members with PostgreSQL on loopback, and their etcd; the first leads at the beginning."""

import base64
import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from support.guard.members import pod
from support.guard.server_ports import free_ports, wait_until
from support.guard.tls_calls import no_socket_left

NET = "127.63.14"
PROGRAMS = Path("/usr/lib/postgresql/15/bin")
USER = "patroni"
PASSWORD = "s3cret"  # noqa: S105 - of the tests' own servers
LOOP_SECONDS = 1
"""Between two looks of a member at the leader's lock (``loop_wait``)."""


def why_not():
    """Why the servers cannot run here; "" if they can."""
    if shutil.which("patroni") is None or shutil.which("etcd") is None or not (PROGRAMS / "postgres").exists():
        return "patroni, etcd or PostgreSQL 15 is not installed (Debian: patroni postgresql-15 etcd-server)"
    if os.getuid() == 0 and not _other_user():
        return "PostgreSQL refuses to run as root, and there is no user postgres"
    return ""


def _other_user():
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("postgres")
    return None


class PatroniServers:
    """Members by number, named as the pod of that number; each has the pod's address."""

    def __init__(self):
        self.port, self._postgres_port, self._etcd_port, self._etcd_peer_port = free_ports(4)
        self.directory = Path(tempfile.mkdtemp(prefix="patroni-"))  # pytest's own is closed to other users
        self._rest = {}
        if os.getuid() == 0:
            user = _other_user()
            os.chown(self.directory, user.pw_uid, user.pw_gid)
            self._rest = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.processes = {}
        self._was_frozen = False
        self._tls = None
        try:
            self._start_etcd()
            for number in range(3):
                self._start(number)
                if number == 0:
                    self.wait_for_leader(0)
            self.make_whole()
        except BaseException:
            self.end()
            raise

    # -- what they say -------------------------------------------------------------------------------------------------

    def call(self, number, method, path, value=None):
        """The status and the JSON, or text, of an answer."""
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        data = None if value is None else json.dumps(value).encode()
        url = f"{'https' if self._tls else 'http'}://{pod(number, net=NET).status.pod_ip}:{self.port}{path}"
        request = urllib.request.Request(url, data, {"authorization": f"Basic {login}"}, method=method)  # noqa: S310 - to loopback
        try:
            rest = {"context": self._tls.make_context()} if self._tls else {}
            seconds = 2 if method == "GET" else 40
            with no_socket_left(), urllib.request.urlopen(request, timeout=seconds, **rest) as answer:  # noqa: S310 - the same
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        with contextlib.suppress(ValueError):
            return status, json.loads(text)
        return status, text.decode()

    def leader(self):
        """The number of the member that leads and is primary; None if there is none."""
        for number in range(3):
            with contextlib.suppress(OSError):
                if self.call(number, "GET", "/primary")[0] == 200:
                    return number
        return None

    def wait_for_leader(self, wanted):
        wait_until(lambda: self.leader() == wanted, self.describe)

    def is_whole(self):
        """Whether one leads, the two others stream from it, and all know of no other mode."""
        with contextlib.suppress(OSError):
            leader = self.leader()
            if leader is None:
                return False
            told = [self.call(number, "GET", "/patroni")[1] for number in range(3)]
            listed = self.call(leader, "GET", "/cluster")[1]["members"]
            modes = [self.call(number, "GET", "/config")[1] for number in range(3)]
            senders = told[leader].get("replication", [])
            return (
                sum(one["state"] == "streaming" for one in senders) == 2
                and len({one.get("timeline") for one in told}) == 1
                and [one["state"] for one in listed] == ["running"] * 3
                and {one["role"] for one in listed} == {"leader", "replica"}
                and not any("cluster_unlocked" in one for one in told)
                and not any("synchronous_mode" in one for one in modes)
            )
        return False

    def make_whole(self):
        """Takes back what tests have done; the number of the member that leads then.

        A member that was frozen may have lost the leader's lock, and learns that some loops later.
        """
        self.thaw()
        if self._was_frozen:
            time.sleep(3 * LOOP_SECONDS)
            self._was_frozen = False
        self.configure(pause=None, synchronous_mode=None, synchronous_mode_strict=None)
        wait_until(self.is_whole, self.describe)
        return self.leader()

    def configure(self, **modes):
        """Changes the dynamic configuration, as ``patronictl edit-config`` does."""

        def is_done():
            with contextlib.suppress(OSError):
                return self.call(0, "PATCH", "/config", modes)[0] == 200
            return False

        wait_until(is_done, self.describe)

    def use_tls(self, files):
        """Has the REST API use a certificate, and ask for one where something is changed; None for HTTP again."""
        self._tls = files
        for number in range(3):
            self._write_configuration(number)
            os.kill(self.processes[number].pid, signal.SIGHUP)

    def wait_for_https(self):
        """Until the members have told each other that they speak HTTPS, some loops after ``use_tls``."""

        def is_told():
            with contextlib.suppress(OSError):
                found = [one for number in range(3) for one in self.call(number, "GET", "/cluster")[1]["members"]]
                return len(found) == 9 and all(one["api_url"].startswith("https:") for one in found)
            return False

        wait_until(is_told, self.describe)
        time.sleep(2 * LOOP_SECONDS)

    def describe(self):
        """What the members say, and the end of their logs."""
        text = "no answer"
        with contextlib.suppress(OSError):
            text = json.dumps(self.call(0, "GET", "/cluster")[1])
        logs = sorted(self.directory.glob("*.log"))
        return "\n".join([text, *(f"{one.name}: {one.read_text(errors='replace')[-2000:]}" for one in logs)])

    def execute(self, number, statement):
        """A statement at one server."""
        line = [PROGRAMS / "psql", "-X", "-q", "-h", pod(number, net=NET).status.pod_ip, "-p", str(self._postgres_port)]
        subprocess.run([*line, "-U", "postgres", "-c", statement, "postgres"], check=True, timeout=60)

    # -- processes -----------------------------------------------------------------------------------------------------

    def freeze(self, *numbers):
        self._was_frozen = True
        self._signal(signal.SIGSTOP, numbers)

    def thaw(self):
        self._signal(signal.SIGCONT, range(3))

    def end(self):
        self._signal(signal.SIGKILL, range(3))
        for process in self.processes.values():
            process.kill()
            process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _signal(self, number, members):
        for one in members:
            for process in self._list_processes(one):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, number)

    def _list_processes(self, number):
        """Patroni first, so that it starts nothing again; then the server, and the server's own."""
        found = [self.processes[number].pid] if number in self.processes else []
        with contextlib.suppress(OSError, ValueError):
            server = int((self._home(number) / "data/postmaster.pid").read_text().split()[0])
            found += [server, *map(int, Path(f"/proc/{server}/task/{server}/children").read_text().split())]
        return found

    def _home(self, number):
        return self.directory / str(number)

    def _start_etcd(self):
        clients, peers = f"http://{NET}.9:{self._etcd_port}", f"http://{NET}.9:{self._etcd_peer_port}"
        line = ["etcd", "--name=e", f"--data-dir={self.directory}/etcd", "--log-level=error"]
        line += [f"--listen-client-urls={clients}", f"--advertise-client-urls={clients}"]
        line += [
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=e={peers}",
        ]
        self.processes["etcd"] = self._run(line, "etcd.log")

    def _start(self, number):
        self._home(number).mkdir()
        if self._rest:
            os.chown(self._home(number), self._rest["user"], self._rest["group"])
        self.processes[number] = self._run(["patroni", str(self._write_configuration(number))], f"{number}.log")

    def _write_configuration(self, number):
        file = self.directory / f"{number}.json"
        file.write_text(json.dumps(self._configure(number)))
        return file

    def _run(self, line, log):
        with (self.directory / log).open("wb") as output:
            environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(self.directory)}
            where = {"env": environment, "cwd": self.directory, "stdin": subprocess.DEVNULL}
            return subprocess.Popen(line, stdout=output, stderr=subprocess.STDOUT, **where, **self._rest)

    def _configure(self, number):
        address, name = pod(number, net=NET).status.pod_ip, pod(number).metadata.name
        postgres = f"{address}:{self._postgres_port}"
        dcs = {"ttl": 20, "loop_wait": LOOP_SECONDS, "retry_timeout": 3, "maximum_lag_on_failover": 2**20}
        small = {"shared_buffers": "16MB", "max_connections": 20, "max_wal_senders": 5, "unix_socket_directories": ""}
        fast = {
            "fsync": "off",
            "wal_keep_size": "64MB",
            "max_wal_size": "256MB",
            "wal_retrieve_retry_interval": "200ms",
        }
        return {
            "scope": "shop",
            "name": name,
            "restapi": {
                "listen": f"{address}:{self.port}",
                "connect_address": f"{address}:{self.port}",
                "authentication": {"username": USER, "password": PASSWORD},
                **self._configure_tls(),
            },
            "etcd3": {"hosts": [f"{NET}.9:{self._etcd_port}"]},
            "bootstrap": {
                "dcs": {**dcs, "postgresql": {"use_pg_rewind": True, "parameters": {**small, **fast}}},
                "initdb": ["no-sync", "data-checksums", {"encoding": "UTF8"}, {"locale": "C"}],
            },
            "postgresql": {
                "listen": postgres,
                "connect_address": postgres,
                "data_dir": str(self._home(number) / "data"),
                "bin_dir": str(PROGRAMS),
                "pgpass": str(self._home(number) / "pgpass"),
                "authentication": {
                    "superuser": {"username": "postgres"},
                    "replication": {"username": "postgres"},
                },
                "pg_hba": ["host all all 127.0.0.0/8 trust", "host replication all 127.0.0.0/8 trust"],
                "basebackup": ["no-sync", {"checkpoint": "fast"}],
            },
        }

    def _configure_tls(self):
        if not self._tls:
            return {}
        files = {"certfile": self._tls.certificate, "keyfile": self._tls.key, "cafile": self._tls.ca}
        return {**{name: str(file) for name, file in files.items()}, "verify_client": "optional"}
