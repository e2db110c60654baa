"""Runs a command of lastcall in the pod of a node's agent, by the user's own kubectl."""

import asyncio
import shutil
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from lastcall.cli import cluster_access
from lastcall.errors import ApiNotPermitted, LastcallError

if TYPE_CHECKING:
    from lastcall.model.node_standing_facts import AgentPod


def run_in_agent_pod(node: str, words: Sequence[str], kubeconfig: str | None, context: str | None) -> int:
    """The exit code of ``lastcall WORDS``, whose output is this program's.

    InvalidInput if there is no such node, LastcallError without a pod of its agent or without kubectl.
    """
    from lastcall.adapters.kube.refusals import explain_refusal
    from lastcall.names import SYSTEM_NAMESPACE

    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise LastcallError("kubectl is not on the PATH: what runs on a node is run by kubectl exec in its agent's pod")
    pod = asyncio.run(_find_agent(node, words[0], kubeconfig, context))
    chosen = [f"--{name}={value}" for name, value in (("kubeconfig", kubeconfig), ("context", context)) if value]
    where = [f"--namespace={SYSTEM_NAMESPACE}", pod.metadata.name, "--container=agent"]
    done = subprocess.run(
        [kubectl, *chosen, "exec", *where, "--", "lastcall", *words, *_agent_words(pod, words[0])],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if said := done.stderr.strip():
        click.echo(explain_refusal(ApiNotPermitted(said)), err=True)
    return done.returncode


async def _find_agent(node: str, verb: str, kubeconfig: str | None, context: str | None) -> "AgentPod":
    from lastcall.adapters.kube.agent_pods import find_agent_pod

    async with cluster_access.open_client(kubeconfig, context, manager=f"lastcall-{verb}") as client:
        return await find_agent_pod(client, node, verb)


def _agent_words(pod: "AgentPod", verb: str) -> list[str]:
    """The options of the agent's own command line that ``doctor`` needs, too: where the runtime is."""
    given = [word for container in pod.spec.containers for word in container.args or () if container.name == "agent"]
    return [word for word in given if verb == "doctor" and word.startswith("--container-runtime-endpoint=")]
