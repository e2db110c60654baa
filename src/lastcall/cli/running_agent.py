"""The settings of the agent that runs on this machine, from its own command line and environment."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lastcall.errors import LastcallError

if TYPE_CHECKING:
    from lastcall.wiring.drill import DrillSettings

_ENVIRONMENT = (
    "DBUS_SYSTEM_BUS_ADDRESS",
    "HOME",
    "KUBECONFIG",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "POD_UID",
)
"""The variables by which an agent finds the bus, the API server and its own pod."""


def find_running_agent(state_dir: Path, proc: Path = Path("/proc")) -> "DrillSettings":
    """The settings of the agent with this state directory; its environment becomes that of this process.

    LastcallError if none runs, or if the process cannot be read.
    """
    from lastcall.adapters.doctor.file_facts import agent_pid

    try:
        pid = agent_pid(state_dir)
        if pid is None:
            raise LastcallError(f"no agent runs with the state directory {state_dir}: a drill needs a running one")
        arguments = (proc / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
        environment = (proc / str(pid) / "environ").read_bytes().decode(errors="replace").split("\0")
    except OSError as error:
        raise LastcallError(f"{error.filename}: {error.strerror}: run the drill as the agent runs: as root") from error
    known = dict(line.partition("=")[::2] for line in environment)
    os.environ.update({name: known[name] for name in _ENVIRONMENT if name in known})
    return agent_settings(arguments, pid=pid, directory=proc / str(pid) / "cwd", own_pod=known.get("POD_UID", ""))


def agent_settings(arguments: Sequence[str], *, pid: int, directory: Path, own_pod: str) -> "DrillSettings":
    """The settings in the command line of an agent that was started in ``directory``.

    LastcallError if it is no command line of ``lastcall agent``.
    """
    from lastcall.cli.agent import command
    from lastcall.wiring.agent import host_name
    from lastcall.wiring.drill import DrillSettings

    if "agent" not in arguments:
        raise LastcallError(f"process {pid} is no lastcall agent: {' '.join(arguments)[:200]}")
    words = list(arguments[arguments.index("agent") + 1 :])
    with command.make_context("agent", words) as context:
        given: dict[str, Any] = context.params
    return DrillSettings(
        config=directory / given["config"],
        state_dir=given["state_dir"],
        node_name=given["node_name"] or host_name(),
        endpoint=given["container_runtime_endpoint"],
        kubelet_unit=given["kubelet_unit"],
        kubelet_root=given["kubelet_root_dir"],
        kubeconfig=str(directory / given["kubeconfig"]) if given["kubeconfig"] else "",
        in_cluster=given["in_cluster"],
        own_pod=own_pod if given["in_cluster"] else "",
        logind_root=given["logind_root"],
    )
