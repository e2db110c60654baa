from pathlib import Path

import click
from click.testing import CliRunner

from lastcall.cli import options


def test_a_relative_state_dir_is_made_absolute(tmp_path, monkeypatch):
    """Pods that are processes start in other directories, from where a relative path would lead nowhere."""
    monkeypatch.chdir(tmp_path)
    seen = []

    @click.command()
    @options.agent_options
    def command(*, settings):
        seen.append(settings.state_dir)

    result = CliRunner().invoke(command, ["--state-dir", "state", "--config", "agent.yaml"])
    assert result.exit_code == 0, result.output
    assert seen == [Path(tmp_path).resolve() / "state"]
