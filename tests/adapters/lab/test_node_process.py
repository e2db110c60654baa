"""``lastcall lab node``: what it refuses before it does anything."""

import pytest

from lastcall.errors import LastcallError, RefusedForSafety
from lastcall.wiring.agent import AgentSettings
from lastcall_lab.static_node.node_process import run_node


def settings(state_dir, tmp_path):
    config = tmp_path / "agent.yaml"
    config.write_text("apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\nshutdownGracePeriod: 5s\n")
    return AgentSettings(config=config, state_dir=state_dir, node_name="n1", metrics=None)


async def test_a_state_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(LastcallError, match=f"^{tmp_path}/file/state: not a directory: .* another --state-dir$"):
        await run_node(settings(tmp_path / "file/state", tmp_path), manifests=tmp_path, endpoint=None)


async def test_nothing_is_made_in_the_kubelets_own_directory(tmp_path):
    kubelet = tmp_path / "kubelet"
    kubelet.mkdir()
    (kubelet / "cpu_manager_state").touch()
    with pytest.raises(RefusedForSafety, match="the kubelet's own directory"):
        await run_node(settings(kubelet, tmp_path), manifests=tmp_path, endpoint=None)
    assert [path.name for path in kubelet.iterdir()] == ["cpu_manager_state"]
