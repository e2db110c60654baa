"""The configuration as the agent's wiring takes it from a file."""

import os
from pathlib import Path

import pytest

from lastcall.wiring import load_config

HEAD = "apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\n"


@pytest.mark.parametrize(
    ("said", "taken"),
    [("manifests", "{}/manifests"), ("../up", "{}/../up"), ("/etc/pods", "/etc/pods"), ("", "")],
)
def test_a_relative_path_is_taken_from_the_files_directory(tmp_path, monkeypatch, said, taken):
    monkeypatch.chdir("/")
    file = tmp_path / "agent.yaml"
    file.write_text(f'{HEAD}staticPodPath: "{said}"\n')
    for path in (file, Path(os.path.relpath(file))):
        assert load_config(path).static_pod_path == taken.format(tmp_path)
