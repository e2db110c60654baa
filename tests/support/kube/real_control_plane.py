"""A private etcd and kube-apiserver, with kube-controller-manager and kube-scheduler, from programs that are there.

``ETCD``, ``KUBE_APISERVER``, ``KUBE_CONTROLLER_MANAGER`` and ``KUBE_SCHEDULER`` name the programs; without them ``PATH`` is searched. All listen on
the loopback interface and keep their files in one directory of their own.

Four identities are used. Who asks for it is in ``system:masters``, whose requests priority and fairness does not limit.
``lastcall controller`` and the bare calls are the controller's service account, with the rights of the shipped manifests.
kube-controller-manager is ``system:kube-controller-manager`` with a service account for each controller, as kubeadm sets it
up; all controllers run that are on by default. A kubelet is that of the node ``bench``. ``account_kubeconfig`` makes
others: service accounts with tokens of the API server.
"""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig as access
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.resources import dict_resource
from lastcall.aio import timeout
from lastcall.errors import LastcallError
from lastcall_lab.apiserver.server import kubeconfig

PROGRAMS = {
    "etcd": "ETCD",
    "kube-apiserver": "KUBE_APISERVER",
    "kube-controller-manager": "KUBE_CONTROLLER_MANAGER",
    "kube-scheduler": "KUBE_SCHEDULER",
    "kubelet": "KUBELET",
}
"""Their names in ``PATH``, and the variables that name other files."""

CONTROLLER = "system:serviceaccount:lastcall-system:lastcall-controller"
TOKENS = {
    "admin": 'admin-token,admin,1,"system:masters"',
    "controller": f'controller-token,{CONTROLLER},2,"system:serviceaccounts,system:serviceaccounts:lastcall-system"',
    "upstream": "upstream-token,system:kube-controller-manager,3",
    "scheduler": "scheduler-token,system:kube-scheduler,5",
    "kubelet": 'kubelet-token,system:node:bench,4,"system:nodes"',
}
"""Lines of kube-apiserver's ``--token-auth-file``: the token, the user, its uid, its groups."""

START = 120
"""Seconds until who does not answer has failed."""

REFUSED = re.compile(r'^apiserver_request_total\{[^}]*code="429"[^}]*\} (\S+)$', re.MULTILINE)


def why_not(*names):
    """Why these programs cannot be started; empty if they can."""
    for name in names:
        said = os.environ.get(PROGRAMS[name])
        if not shutil.which(said or name):
            return (
                f"{PROGRAMS[name]}={said} is no program"
                if said
                else f"no {name} in PATH, nor named by {PROGRAMS[name]}"
            )
    return ""


def versions():
    """``kube-apiserver 1.36.2, etcd 3.5.16``."""
    return ", ".join(f"{program} {_version(program)}" for program in ("kube-apiserver", "etcd"))


class RealControlPlane:
    """``directory`` is empty, and keeps the data and the logs. RuntimeError if one of the programs does not start."""

    def __init__(self, directory):
        self._directory = directory
        self._certificate = directory / "certificates" / "apiserver.crt"
        self._key = directory / "service-accounts.key"
        self._port = free_port()
        self._processes = []

    @contextlib.asynccontextmanager
    async def running(self):
        """From when kube-apiserver is ready until both have ended."""
        self._certificate.parent.mkdir()
        self._key.write_bytes(_private_key())
        (self._directory / "tokens.csv").write_text("".join(f"{line}\n" for line in TOKENS.values()))
        async with contextlib.AsyncExitStack() as stack:
            client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
            for program, arguments in (("etcd", self._etcd(client, peer)), ("kube-apiserver", self._api(client))):
                self._processes.append(await stack.enter_async_context(self._run(program, *arguments)))
            await self._ready()
            yield self

    @property
    def pids(self):
        """Of etcd and kube-apiserver."""
        return tuple(process.pid for process in self._processes)

    def kubeconfig(self, who):
        """The file with which ``admin``, ``controller``, ``upstream``, ``scheduler`` or ``kubelet`` reaches the API server."""
        path = self._directory / f"{who}.kubeconfig"
        if not path.exists():
            token = TOKENS[who].partition(",")[0]
            url, authority = f"https://127.0.0.1:{self._port}", self._certificate.read_bytes()
            kubeconfig.write_kubeconfig(path, url=url, authority=authority, token=token, user=who)
        return path

    async def account_kubeconfig(self, client, namespace, account):
        """The file with which a service account reaches the API server, for two hours. ``client`` is an administrator's."""
        accounts = dict_resource("", "v1", "serviceaccounts")
        wanted = {"spec": {"expirationSeconds": 7200}}
        made = await client.create_subresource(accounts, account, "token", wanted, namespace=namespace)
        path = self._directory / f"{namespace}-{account}.kubeconfig"
        token = TOKENS["admin"].partition(",")[0]
        path.write_text(self.kubeconfig("admin").read_text().replace(token, made["status"]["token"]))
        return path

    @contextlib.asynccontextmanager
    async def controller_manager(self, *arguments):
        """kube-controller-manager, with these arguments beside those that it needs; its process."""
        said = (
            f"--kubeconfig={self.kubeconfig('upstream')}",
            "--leader-elect=false",
            "--use-service-account-credentials",
            f"--service-account-private-key-file={self._key}",
            f"--root-ca-file={self._certificate}",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            f"--cert-dir={self._certificate.parent}",
        )
        async with self._run("kube-controller-manager", *said, *arguments) as process:
            yield process.pid

    @contextlib.asynccontextmanager
    async def scheduler(self):
        """kube-scheduler; its process."""
        said = (
            f"--kubeconfig={self.kubeconfig('scheduler')}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={free_port()}",
            f"--cert-dir={self._certificate.parent}",
        )
        async with self._run("kube-scheduler", *said) as process:
            yield process.pid

    async def refused(self):
        """How many requests kube-apiserver has answered with 429 since its start."""
        known = access.load_kubeconfig([self.kubeconfig("admin")], SystemClock())
        with contextlib.closing(HttpsTransport(known.endpoint, known.credentials)) as http:
            text = (await http.request("GET", "/metrics", {}, b"")).body.decode()
        assert "apiserver_request_total" in text
        return sum(int(float(count)) for count in REFUSED.findall(text))

    # -- programs ------------------------------------------------------------------------------------------------------

    def _etcd(self, client, peer):
        return (
            f"--data-dir={self._directory / 'etcd'}",
            *(f"--{kind}-client-urls={client}" for kind in ("listen", "advertise")),
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
        )

    def _api(self, etcd):
        return (
            f"--etcd-servers={etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--cert-dir={self._certificate.parent}",
            f"--token-auth-file={self._directory / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._key}",
            f"--service-account-signing-key-file={self._key}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--endpoint-reconciler-type=none",
        )

    @contextlib.asynccontextmanager
    async def _run(self, program, *arguments):
        log = self._directory / f"{program}.log"
        with log.open("ab") as file:
            process = await asyncio.create_subprocess_exec(
                program_path(program), *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=file, stderr=file
            )
        try:
            yield process
        finally:
            ended = process.returncode
            await _end(process)
            if ended is not None:
                raise RuntimeError(f"{program} ended with exit code {ended}:\n{log.read_text()[-3000:]}")

    async def _ready(self):
        async with timeout(START):
            while not all(self._certificate.with_suffix(end).exists() for end in (".crt", ".key")):
                await self._pause()
            known = access.load_kubeconfig([self.kubeconfig("admin")], SystemClock())
            with contextlib.closing(HttpsTransport(known.endpoint, known.credentials)) as http:
                while not await _answers(http):
                    await self._pause()

    async def _pause(self):
        """RuntimeError if nobody is left who could become ready."""
        await asyncio.sleep(0.1)
        if any(process.returncode is not None for process in self._processes):
            raise RuntimeError("the control plane has ended before it was ready")


async def _answers(http):
    with contextlib.suppress(LastcallError):
        return (await http.request("GET", "/readyz", {}, b"")).status == 200
    return False


async def _end(process):
    """SIGTERM, and SIGKILL after ten seconds: kube-apiserver waits for who watches."""
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
        try:
            async with timeout(10):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def _version(program):
    """The first one that it says."""
    said = subprocess.run([program_path(program), "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"\d+(\.\d+)+", said)
    return found[0] if found else "of an unknown version"


def program_path(program):
    """The file of a program."""
    return shutil.which(os.environ.get(PROGRAMS[program]) or program)


def free_port():
    """A port of the loopback interface that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def _private_key():
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
