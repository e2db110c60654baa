"""A drill takes the settings of the agent from the agent's own command line."""

from pathlib import Path

import pytest

from lastcall.cli.running_agent import agent_settings
from lastcall.errors import LastcallError
from lastcall.manifests.daemon_set import agent_daemon_set

HERE = Path("/proc/7/cwd")


def settings(*words, own_pod="u"):
    return agent_settings(["python3", "-P", "-m", "lastcall", *words], pid=7, directory=HERE, own_pod=own_pod)


def test_the_defaults_are_the_agents():
    found = settings("agent")
    assert (found.kubelet_unit, found.kubelet_root) == ("kubelet.service", "/var/lib/kubelet")
    assert (found.config, found.state_dir) == (Path("/etc/lastcall/agent.yaml"), Path("/var/lib/lastcall"))
    assert (found.kubeconfig, found.in_cluster, found.own_pod) == ("", False, "")


def test_what_was_given():
    found = settings("agent", "--config", "a.yaml", "--kubeconfig=k", "--node-name", "n1", "--kubelet-unit=", "-v")
    assert (found.config, found.kubeconfig) == (HERE / "a.yaml", str(HERE / "k")), "relative to where it was started"
    assert (found.node_name, found.kubelet_unit) == ("n1", "")


def test_the_command_line_of_the_daemon_set():
    [container] = agent_daemon_set("lastcall-system", image="i")["spec"]["template"]["spec"]["containers"]
    words = [word.replace("$(NODE_NAME)", "worker-1") for word in container["args"]]
    found = settings(*words)
    assert (found.node_name, found.in_cluster, found.own_pod) == ("worker-1", True, "u")


def test_another_process_is_none():
    with pytest.raises(LastcallError, match="process 7 is no lastcall agent: python3 -P -m lastcall lab node"):
        settings("lab", "node")
