"""Members of applications at loopback addresses, and what lets a provider reach them without rules."""

import asyncio
import os

from lastcall.adapters.guard.namespace_access import open_stream
from lastcall.adapters.kube import tls
from lastcall.errors import LastcallError, Unavailable
from lastcall.model.pods import ObjectMetadata, Pod, PodSpec, PodStatus, StatusCondition
from lastcall.ports.guard import ExecResult, GuardedMember

CAP = 64 * 1024


def pod(number, name="redis", net="127.63.7", labels=None):
    """A pod of which each number has an address of its own."""
    return Pod(
        metadata=ObjectMetadata(name=f"{name}-{number}", namespace="shop", uid=f"uid-{number}", labels=labels),
        spec=PodSpec(node_name="node-1"),
        status=PodStatus(
            phase="Running",
            pod_ip=f"{net}.{number + 1}",
            conditions=(StatusCondition(type="Ready", status="True"),),
        ),
    )


def member(number, of=3, **rest):
    """The pod of this number, and the others."""
    return GuardedMember(pod=pod(number, **rest), others=tuple(pod(one, **rest) for one in range(of) if one != number))


def gone(number, of=3, **rest):
    """The same after the member is gone."""
    found = member(number, of, **rest)
    metadata = found.pod.metadata
    rest = ObjectMetadata(name=metadata.name, namespace=metadata.namespace, uid=metadata.uid)
    return GuardedMember(pod=Pod(metadata=rest), others=found.others)


class Loopback:
    """``NamespaceAccess`` without rules, to whatever listens; commands are local processes with ``environment``.

    A secret is a text that any key has, or a mapping.
    """

    def __init__(self, environment=None, pods=(), **secrets):
        self.pods = pods
        self.secrets = secrets
        self.environment = environment or {}
        self.commands = []
        self.is_up = True

    async def connect(self, pod, port, *, tls_name="", ca="", certificate="", key=""):
        context = tls.client_context(ca, certificate=certificate, key=key) if ca or tls_name else None
        return await open_stream(
            pod.status.pod_ip, port, f"pod {pod.key}", context=context, name=(tls_name or None) if context else None
        )

    async def list_pods(self, selector):
        return tuple(one for one in self.pods if selector.selects(one.metadata.labels or {}))

    async def read_secret(self, name, key):
        if name not in self.secrets:
            raise LastcallError(f"there is no Secret shop/{name}")
        found = self.secrets[name]
        return found[key] if isinstance(found, dict) else found

    async def execute(self, pod, container, command):
        self.commands.append((pod.metadata.name, container, command))
        if not self.is_up:
            raise Unavailable(f"pod {pod.key}: no kubelet answers")
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                env={**os.environ, **self.environment},
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise LastcallError(f"error executing command in container: {error}") from error
        try:
            out, err = await process.communicate()
        except BaseException:
            process.kill()
            await process.wait()
            raise
        return ExecResult(
            code=process.returncode,
            stdout=out[:CAP].decode(errors="replace"),
            stderr=err[:CAP].decode(errors="replace"),
        )
