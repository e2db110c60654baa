"""Three real RabbitMQ nodes on loopback with queues that they replicate, and their epmd."""

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

from support.guard.certificates import TlsFiles
from support.guard.members import Loopback, pod
from support.guard.server_ports import free_ports, wait_until

NET = "127.63.17"
PROGRAMS = Path("/usr/lib/rabbitmq/bin")
USER = "guard"
PASSWORD = "s3cret"  # noqa: S105 - of the tests' own servers
QUEUE = "orders"
QUORUM = "/api/health/checks/node-is-quorum-critical"


def why_not():
    """Why the servers cannot run here; "" if they can."""
    if not (PROGRAMS / "rabbitmq-server").exists() or shutil.which("epmd") is None:
        return "RabbitMQ is not installed (Debian: rabbitmq-server)"
    if os.getuid() == 0 and _other_user() is None:
        return "there is no user rabbitmq"
    return ""


def _other_user():
    with contextlib.suppress(KeyError):
        return pwd.getpwnam("rabbitmq")
    return None


class RabbitmqServers:
    """Nodes by number; each has the address of the pod of that number, and listens to no other.

    The management API has two ports: by ``tls_port`` it speaks HTTPS, with ``tls``, and wants a client's certificate.
    """

    def __init__(self):
        self.port, self.tls_port, self._client_port, self._epmd_port, *self._cluster_ports = free_ports(7)
        self.directory = Path(tempfile.mkdtemp(prefix="rabbitmq-"))  # pytest's own is closed to other users
        self.tls = TlsFiles(self.directory / "tls")
        self._rest = {}
        if os.getuid() == 0:
            user = _other_user()
            self._rest = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        cookie = self.directory / ".erlang.cookie"
        cookie.write_text("cookie")
        cookie.chmod(0o400)
        self._give(self.directory, cookie)
        self.processes = {}
        try:
            self._start_epmd()
            for numbers in ((0,), (1, 2)):
                for number in numbers:
                    self.start(number)
                for number in numbers:
                    wait_until(lambda one=number: self.answers(one), self.describe)
            self.declare(0, QUEUE)
            self.make_whole()
        except BaseException:
            self.end()
            raise

    # -- what they say -------------------------------------------------------------------------------------------------

    def call(self, number, method, path, value=None):
        """The status and the JSON of an answer."""
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        data = None if value is None else json.dumps(value).encode()
        url = f"http://{address(number)}:{self.port}{path}"
        request = urllib.request.Request(url, data, {"authorization": f"Basic {login}"}, method=method)  # noqa: S310 - to loopback
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - the same
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                status, text = error.code, error.read()
        return status, json.loads(text) if text.strip() else None

    def answers(self, number):
        """Whether its management API does: not in maintenance mode."""
        with contextlib.suppress(OSError):
            return self.call(number, "GET", "/api/whoami")[0] == 200
        return False

    def declare(self, number, queue, replicas=3):
        """A quorum queue which the node leads."""
        arguments = {"x-queue-type": "quorum", "x-quorum-initial-group-size": replicas}
        wanted = {"durable": True, "arguments": arguments}
        assert self.call(number, "PUT", f"/api/queues/%2F/{queue}", wanted)[0] in (201, 204)

    def delete(self, number, queue):
        assert self.call(number, "DELETE", f"/api/queues/%2F/{queue}")[0] == 204

    def publish(self, number, text):
        """Whether a message was routed into the queue."""
        body = {"properties": {"delivery_mode": 2}, "routing_key": QUEUE, "payload": text, "payload_encoding": "string"}
        return self.call(number, "POST", "/api/exchanges/%2F/amq.default/publish", body)[1] == {"routed": True}

    def take(self, number):
        """What is in the queue, which is empty afterwards."""
        wanted = {"count": 100, "ackmode": "ack_requeue_false", "encoding": "auto"}
        return [one["payload"] for one in self.call(number, "POST", f"/api/queues/%2F/{QUEUE}/get", wanted)[1]]

    def leader(self, number):
        """The number of the node that leads the queue, as this one says."""
        found = self.call(number, "GET", f"/api/queues/%2F/{QUEUE}")[1]
        return next((one for one in range(3) if found.get("leader") == node(one)), None)

    def is_whole(self):
        """Whether all nodes run, agree, and would leave each queue its quorum."""
        with contextlib.suppress(OSError):
            checks = [self.call(one, "GET", QUORUM) for one in range(3)]
            listed = self.call(0, "GET", "/api/nodes?columns=name,running,partitions")[1]
            return all(status == 200 for status, _ in checks) and all(
                one.get("running") and not one.get("partitions") for one in listed
            )
        return False

    def make_whole(self):
        """Takes back what tests have done. What had no other leader yet when a node was revived needs that once more."""
        self.thaw()
        for number in range(3):
            if not self.answers(number):
                self.command(number, "rabbitmq-upgrade", "revive")
        end = time.monotonic() + 60
        while not self._becomes_whole():
            assert time.monotonic() < end, self.describe()
            for number in range(3):
                self.command(number, "rabbitmq-upgrade", "revive")

    def _becomes_whole(self):
        for _ in range(50):
            if self.is_whole():
                return True
            time.sleep(0.1)
        return False

    def describe(self):
        """What the nodes say, and the end of their logs."""
        said = [self._say(number, path) for number in range(3) for path in (QUORUM, "/api/nodes?columns=name,running")]
        logs = sorted(self.directory.glob("*.log"))
        return "\n".join([*said, *(f"{one.name}: {one.read_text(errors='replace')[-2000:]}" for one in logs)])

    def _say(self, number, path):
        try:
            return f"{number}: {path}: {self.call(number, 'GET', path)}"
        except OSError as error:
            return f"{number}: {path}: {error}"

    # -- processes -----------------------------------------------------------------------------------------------------

    def environment(self, number):
        """What its programs need to know."""
        home = self.directory / str(number)
        interface = address(number).replace(".", ",")
        return {
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "HOME": str(self.directory),
            "LANG": "C.UTF-8",
            "ERL_CRASH_DUMP_SECONDS": "0",
            "ERL_EPMD_PORT": str(self._epmd_port),
            "RABBITMQ_NODENAME": node(number),
            "RABBITMQ_USE_LONGNAME": "true",
            "RABBITMQ_DIST_PORT": str(self._cluster_ports[number]),
            "RABBITMQ_MNESIA_BASE": str(home),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_LOG_BASE": str(home),
            "RABBITMQ_PID_FILE": str(home / "pid"),
            "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(home / "advanced"),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"+S 1:1 +sbwt none -kernel inet_dist_use_interface {{{interface}}}",
            "RABBITMQ_CTL_ERL_ARGS": "+S 1:1 +sbwt none",
        }

    def command(self, number, *words):
        """A command of a node's container, run to its end."""
        return subprocess.run(
            words, env=self.environment(number), cwd=self.directory, check=True, capture_output=True, **self._rest
        )

    def access(self, **secrets):
        """``NamespaceAccess`` to the nodes, and to their commands."""
        return _NodeAccess(self, **secrets)

    def start(self, number):
        home = self.directory / str(number)
        home.mkdir(exist_ok=True)
        (home / "rabbitmq.conf").write_text("\n".join(f"{key} = {value}" for key, value in self._configure(number)))
        (home / "plugins").write_text("[rabbitmq_management].\n")
        self._give(home, *home.iterdir())
        self.processes[number] = self._run([str(PROGRAMS / "rabbitmq-server")], number, f"{number}.log")

    def stop(self, number):
        """SIGTERM, as a kubelet sends it, and waits for the end."""
        self.processes[number].terminate()
        self.processes[number].wait(60)

    def freeze(self, *numbers):
        """Returns when no thread of theirs runs any more: on a busy machine a signal takes its time."""
        self._signal(signal.SIGSTOP, numbers)
        wait_until(lambda: all(self._is_frozen(one) for one in numbers), lambda: "they run on")

    def _is_frozen(self, number):
        group = self.processes[number].pid
        states = [state for found, state in _list_threads() if found == group]
        return bool(states) and set(states) <= {"T", "Z"}

    def thaw(self):
        self._signal(signal.SIGCONT, range(3))

    def end(self):
        self._signal(signal.SIGKILL, range(3))
        for process in self.processes.values():
            process.kill()
            process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _signal(self, number, nodes):
        """To the whole group of processes of each node."""
        for one in nodes:
            with contextlib.suppress(ProcessLookupError, KeyError):
                os.killpg(self.processes[one].pid, number)

    def _give(self, *paths):
        if self._rest:
            for path in paths:
                os.chown(path, self._rest["user"], self._rest["group"])

    def _start_epmd(self):
        addresses = ",".join(address(number) for number in range(3))
        line = ["epmd", "-address", addresses, "-port", str(self._epmd_port)]
        self.processes["epmd"] = self._run(line, 0, "epmd.log")

    def _run(self, line, number, log):
        with (self.directory / log).open("ab") as output:
            where = {"env": self.environment(number), "cwd": self.directory, "stdin": subprocess.DEVNULL}
            where |= {"stdout": output, "stderr": subprocess.STDOUT, "start_new_session": True}
            return subprocess.Popen(line, **where, **self._rest)

    def _configure(self, number):
        yield "listeners.tcp.1", f"{address(number)}:{self._client_port}"
        yield "management.tcp.ip", address(number)
        yield "management.tcp.port", self.port
        yield "management.ssl.ip", address(number)
        yield "management.ssl.port", self.tls_port
        yield "management.ssl.cacertfile", self.tls.ca
        yield "management.ssl.certfile", self.tls.certificate
        yield "management.ssl.keyfile", self.tls.key
        yield "management.ssl.verify", "verify_peer"
        yield "management.ssl.fail_if_no_peer_cert", "true"
        yield "default_user", USER
        yield "default_pass", PASSWORD
        yield "loopback_users", "none"
        yield "disk_free_limit.absolute", "1MB"
        yield "raft.wal_max_size_bytes", 8 * 2**20
        yield "cluster_formation.peer_discovery_backend", "classic_config"
        yield "cluster_formation.discovery_retry_interval", 500
        for one in range(3):
            yield f"cluster_formation.classic_config.nodes.{one + 1}", node(one)


class _NodeAccess(Loopback):
    def __init__(self, servers, **secrets):
        super().__init__(**secrets)
        self._servers = servers

    async def execute(self, pod, container, command):
        number = next(one for one in range(3) if address(one) == pod.status.pod_ip)
        self.environment = self._servers.environment(number)
        return await super().execute(pod, container, command)


def _list_threads():
    """The process group and the state of each thread."""
    for file in Path("/proc").glob("[0-9]*/task/[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, group = file.read_text().rpartition(")")[2].split()[:3]
            yield int(group), state


def address(number):
    return pod(number, net=NET).status.pod_ip


def node(number):
    """One epmd knows all of them, by what precedes the @."""
    return f"rabbit{number}@{address(number)}"
