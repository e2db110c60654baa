"""What the verbs draw as tables: it can be pasted, compared and committed as it is."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from support.clusters import lease, out, pod, state

from lastcall.cli.main import cli

LADDER = Path(__file__).parents[2] / "docs" / "examples" / "ladder"
GONE = state(out("n1"), lease("n1", 90), pod("db-0", "n1", terminating=True), pod("a-longer-name", "n1"))
PLANS = [
    (["plan", f"--config={LADDER / 'agent.yaml'}", f"--pods={LADDER / 'pods.yaml'}"], "SIGTERM"),
    (["failover", "plan", "--state=-", "--now=2026-11-21T12:00:00Z"], "shop/a-longer-name"),
]


@pytest.mark.parametrize(("line", "told"), PLANS, ids=["plan", "failover plan"])
def test_no_line_ends_in_blanks(line, told):
    result = CliRunner().invoke(cli, line, input=GONE)
    assert (result.exit_code, result.stderr) == (0, "")
    assert told in result.stdout
    assert [text for text in result.stdout.splitlines() if text != text.rstrip()] == []
    assert result.stdout.endswith("\n")
