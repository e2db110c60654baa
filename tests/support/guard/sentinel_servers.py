"""Real Redis servers and their Sentinels on loopback; the first server is the master at the beginning.

Each pod has a server and a Sentinel, at two ports of its address.
"""

import contextlib
import os
import signal
import socket
import ssl
import time

from support.guard.members import pod
from support.guard.redis_servers import Servers
from support.guard.tls_calls import no_socket_left

NAME = "shop"
QUICK = "info-period 200 publish-period 100 ping-period 100 tilt-trigger 100000 slave-reconf-timeout 2000 min-link-reconnect-period 200"
"""``SENTINEL DEBUG``: so that a test takes no minute. A Sentinel that was frozen is to act at once (``tilt-trigger``)."""


class SentinelServers(Servers):
    """The servers by number, and their Sentinels by ``s`` and the number.

    ``through`` is the address by which replicas reach the master, if it is another than the master's.
    """

    net = "127.63.15"

    def __init__(
        self,
        ports,
        directory,
        *,
        count=3,
        quorum=2,
        password="",
        down_after=3000,
        failover_timeout=4000,
        watched=True,
        through=None,
        **tls,
    ):
        super().__init__(ports(), directory)
        self.sentinel_port, self.count, self._tls = ports(), count, tls
        self._password, self._quorum = password, quorum
        self._timing = (down_after, failover_timeout)
        words = ("--requirepass", password, "--masterauth", password) if password else ()
        for number in range(count):
            if number and through:
                self.start(number, "--replicaof", *through, *words)
            else:
                self.start(number, *words, master=0 if number else None)
        for number in range(count):
            self._wait_for_port(number)
        for number in range(count if watched else 0):
            self.start_sentinel(number)
        if watched:
            self.wait_until_known(count)

    def start(self, number, *more, master=None):
        super().start(number, "--enable-debug-command", "yes", *more, *self._list_tls(self.port), master=master)

    def start_sentinel(self, number, *, quorum=None, password=None):
        where = self.directory / f"s{number}"
        where.mkdir(exist_ok=True)
        address, (down_after, failover_timeout) = self.address(number), self._timing
        lines = [f"sentinel monitor {NAME} {self.address(0)} {self.port} {quorum or self._quorum}"]
        lines += [f"sentinel announce-ip {address}"]  # on loopback all have the same as their own
        lines += [f"sentinel down-after-milliseconds {NAME} {down_after}"]
        lines += [f"sentinel failover-timeout {NAME} {failover_timeout}"]
        shown = self._password if password is None else password
        if shown:
            lines += [f"sentinel auth-pass {NAME} {shown}"]
        if self._password:
            lines += [f"requirepass {self._password}", f"sentinel sentinel-pass {self._password}"]
        (where / "sentinel.conf").write_text("\n".join([*lines, ""]))
        arguments = ["--sentinel", "--port", self.sentinel_port, "--bind", address, "--dir", where]
        self.run(f"s{number}", where / "sentinel.conf", *arguments, *self._list_tls(self.sentinel_port))
        self._hurry(number)

    def wait_until_known(self, count):
        """Until each of the Sentinels knows all others."""
        end = time.monotonic() + 60
        for number in range(count):
            others = ""
            while others != str(count - 1):
                assert time.monotonic() < end, others
                time.sleep(0.02)
                said = self.say(number, "SENTINEL", "MASTER", NAME, sentinel=True).split("\r\n")
                others = said[said.index("num-other-sentinels") + 2]

    def say(self, number, *words, sentinel=False):
        """One answer of a server, or of its Sentinel, as lines of the protocol. OSError if there is none."""
        port = self.sentinel_port if sentinel else self.port
        with contextlib.closing(self._connect(number, port)) as made:
            if self._password:
                _ask(made, ["AUTH", self._password])
            return _ask(made, words)

    def _wait_for_port(self, number):
        end = time.monotonic() + 60
        while True:
            try:
                return socket.create_connection((self.address(number), self.port), 5).close()
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.02)

    def _connect(self, number, port):
        made = socket.create_connection((self.address(number), port), 5)
        made.settimeout(5)
        if not self._tls:
            return made
        context = ssl.create_default_context(cafile=self._tls["ca_cert_file"])
        context.check_hostname = False
        context.load_cert_chain(self._tls["cert_file"], self._tls["key_file"])
        with no_socket_left():
            return context.wrap_socket(made)

    def role(self, number):
        return self.say(number, "ROLE").split("\r\n")[2]

    def masters(self):
        """The numbers of all that say that they are masters; who does not answer says nothing."""
        found = []
        for number in range(self.count):
            with contextlib.suppress(OSError):
                found += [number] if self.role(number) == "master" else []
        return found

    def freeze(self, *names):
        for name in names:
            os.kill(self.processes[name].pid, signal.SIGSTOP)

    def thaw(self, *names):
        for name in names or self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.processes[name].pid, signal.SIGCONT)

    def kill(self, *names):
        for name in names:
            self.processes[name].kill()
            self.processes[name].wait()

    def read_log(self, number):
        return (self.directory / f"s{number}" / "log").read_text()

    def _hurry(self, number):
        end = time.monotonic() + 60
        while True:
            try:
                assert "OK" in self.say(number, "SENTINEL", "DEBUG", *QUICK.split(), sentinel=True)
                return
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.02)

    def _list_tls(self, port):
        if not self._tls:
            return []
        words = ["--port", 0, "--tls-port", port, "--tls-replication", "yes"]
        for name, value in self._tls.items():
            words += [f"--tls-{name.replace('_', '-')}", value]
        return words


def _ask(made, words):
    parts = [str(word).encode() for word in words]
    made.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(one), one) for one in parts))
    answer = made.recv(65536).decode()
    if not answer:
        raise ConnectionError("the server has closed")
    return answer


def pods(count=3):
    """The pods of the servers."""
    return [pod(number, net=SentinelServers.net) for number in range(count)]
