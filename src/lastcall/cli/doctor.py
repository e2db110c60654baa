"""``lastcall doctor``: whether this machine's shutdown will be graceful, and what to mend."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lastcall.cli import cluster_access, options
from lastcall.cli.agent_pod import run_in_agent_pod
from lastcall.errors import InvalidInput
from lastcall.model.foreign_text import plain_text

if TYPE_CHECKING:
    from lastcall.doctor.all_checks import DoctorReport
    from lastcall.doctor.facts import HostFacts

_MARKS = {"ok": "ok", "warning": "warn", "failure": "FAIL", "unknown": "?"}


@click.command("doctor")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help=f"The agent's configuration.  [default: {options.CONFIG}, if it is there]",
)
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    default=options.STATE_DIR,
    show_default=True,
    help="The agent's state directory.",
)
@options.endpoint
@click.option(
    "--kubeconfig",
    metavar="FILE",
    help="As kubectl has it: kube-controller-manager, FencePolicies, the guard, and the watchdog's peers, are looked for in the cluster."
    "  [default: only this node's pods, as the kubelet's identity]",
)
@click.option(
    "--node",
    metavar="NAME",
    shell_complete=cluster_access.complete_node,
    help="A node of the cluster: it runs in the pod of its agent, by kubectl exec; --kubeconfig is the user's own then."
    "  [default: this machine]",
)
@click.option("--context", metavar="NAME", help="With --node: a context of the kubeconfig.  [default: the current one]")
@click.option("--logind-root", type=click.Path(path_type=Path), default=Path("/"), hidden=True)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def command(
    ctx: click.Context,
    *,
    config: Path | None,
    state_dir: Path,
    container_runtime_endpoint: str,
    kubeconfig: str | None,
    node: str | None,
    context: str | None,
    logind_root: Path,
    output: str,
) -> None:
    """Checks whether this machine's shutdown will be graceful, and says what to mend.

    Changes nothing; a delay lock, and the port of watchdog.peers, are taken for an instant. Run it as the agent runs: as root. Exit code 1 if a check
    fails (warnings do not count), 2 if a file that was named cannot be read.
    """
    import msgspec

    from lastcall.doctor import all_checks
    from lastcall.doctor.facts import UnknownFact

    if node:
        ctx.exit(run_in_agent_pod(node, ["doctor", f"--output={output}"], kubeconfig, context))
    if context:
        raise click.UsageError("--context says where --node is: it is not given")
    where = (config or logind_root / str(options.CONFIG).lstrip("/"), state_dir, container_runtime_endpoint)
    facts = asyncio.run(_gather_facts(*where, root=logind_root, kubeconfig=kubeconfig))
    if config and isinstance(facts.config, UnknownFact):
        raise InvalidInput("--config", [facts.config.reason])
    report = all_checks.build_report(all_checks.run_checks(facts))
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(report), indent=2))
    else:
        print_report(report)
    ctx.exit(1 if report.failures else 0)


async def _gather_facts(
    config: Path, state_dir: Path, endpoint: str, *, root: Path, kubeconfig: str | None
) -> "HostFacts":
    import msgspec

    from lastcall.adapters.doctor import cluster_facts
    from lastcall.adapters.doctor.bus_facts import HostBus
    from lastcall.adapters.doctor.host_facts import HostLocations, gather_host_facts
    from lastcall.adapters.doctor.identity_facts import check_node_identity, check_own_identity
    from lastcall.adapters.doctor.priority_facts import gather_priorities
    from lastcall.doctor.host_checks import AGENT_UNIT, TARGETS
    from lastcall.doctor.peer_checks import peer_port
    from lastcall.doctor.pod_checks import static_pod_path

    where = HostLocations(
        config=config, state_dir=state_dir, endpoint=endpoint, targets=TARGETS, unit=AGENT_UNIT, root=root
    )
    facts = await gather_host_facts(where, HostBus())
    path = static_pod_path(facts)
    priorities = await gather_priorities(
        endpoint, state_dir, static_pod_path=path, kubeconfig=kubeconfig or "", root=root
    )
    identity = await check_node_identity(kubeconfig or "", root)
    facts = msgspec.structs.replace(facts, priorities=priorities, node_identity=identity)
    if kubeconfig is None:
        return facts
    asked = peer_port(facts)
    return msgspec.structs.replace(
        facts,
        controllers=await cluster_facts.list_controller_managers(kubeconfig),
        own_identity=await check_own_identity(kubeconfig, root),
        policies=await cluster_facts.list_fence_policies(kubeconfig),
        guard=await cluster_facts.find_guard(kubeconfig),
        peers=None if asked is None else await cluster_facts.probe_watchdog_peers(kubeconfig, asked),
    )


def print_report(report: "DoctorReport") -> None:
    """Prints the checks for people, and their counts."""
    width = max(len(check.name) for check in report.checks)
    for check in report.checks:
        click.echo(f"{_MARKS[check.verdict.value]:<4}  {check.name:<{width}}  {plain_text(check.message)}")
        if check.fix:
            click.echo(f"{'':4}  {'':{width}}  fix: {plain_text(check.fix)}")
    click.echo(f"\n{_summary_line(report)}")


def _summary_line(report: "DoctorReport") -> str:
    open_questions = sum(check.verdict.value == "unknown" for check in report.checks)
    counts = [
        _count_text(report.failures, "failure"),
        _count_text(report.warnings, "warning"),
        f"{open_questions} not known",
    ]
    if report.failures:
        return f"{', '.join(counts)}: mend the failures, or a shutdown may not be graceful."
    return f"{', '.join(counts)}."


def _count_text(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
