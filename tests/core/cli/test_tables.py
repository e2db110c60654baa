"""What the verbs draw as tables: it can be pasted, compared and committed as it is."""

import cProfile
import io
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console
from support.agents import virtual_parts
from support.failover.snapshots import lease, out, pod, state

from lastcall.cli.main import cli
from lastcall.cli.tables import TableRow, print_number_table
from lastcall.model.shutdown import PhaseStarted, PodStarted
from lastcall_lab.demo.view import DemoView

LADDER = Path(__file__).parents[3] / "docs" / "examples" / "ladder"
GONE = state(
    out("n1"), lease("n1", 90), pod("db-0", "n1", terminating=True), pod("a-name-of-thirty-and-one-letters", "n1")
)
PLANS = [
    (["plan", f"--config={LADDER / 'agent.yaml'}", f"--pods={LADDER / 'pods.yaml'}"], "SIGTERM"),
    (["failover", "plan", "--state=-", "--now=2026-11-21T12:00:00Z"], "a-name-of-thirty-and-one-letters"),
]


@pytest.mark.parametrize("columns", ["20", "39", "80", ""])
@pytest.mark.parametrize(("line", "told"), PLANS, ids=["plan", "failover plan"])
def test_no_line_ends_in_blanks(line, told, columns):
    result = CliRunner(env={"COLUMNS": columns}).invoke(cli, line, input=GONE)
    assert (result.exit_code, result.stderr) == (0, "")
    assert told in result.stdout if columns in ("", "80") else told in names_in(result.stdout)
    assert [text for text in result.stdout.splitlines() if text != text.rstrip()] == []
    assert result.stdout.endswith("\n")


def names_in(said):
    """Its first column and then all of it, as if no line were folded."""
    return "".join("".join(line[:21].split()) for line in said.splitlines()) + "".join(said.split())


@pytest.mark.parametrize("columns", ["0", "1", "20", "39", "200", "-5", "wide", ""])
@pytest.mark.parametrize("line", [line for line, _ in PLANS], ids=["plan", "failover plan"])
def test_no_name_is_lost_at_any_width(line, columns, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    whole = CliRunner().invoke(cli, line, input=GONE).stdout
    found = CliRunner(env={"COLUMNS": columns}).invoke(cli, line, input=GONE)
    assert (found.exit_code, found.stderr) == (0, "")
    names = set(re.findall(r"[\w-]+/[\w-]+", whole))
    assert len(names) > 1
    assert [name for name in names if name not in names_in(found.stdout)] == []


@pytest.mark.parametrize("columns", ["0", "-5", "wide", ""])
@pytest.mark.parametrize("line", [line for line, _ in PLANS], ids=["plan", "failover plan"])
def test_columns_that_are_no_number_of_columns_count_as_not_set(line, columns, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    whole = CliRunner().invoke(cli, line, input=GONE).stdout
    assert CliRunner(env={"COLUMNS": columns}).invoke(cli, line, input=GONE).stdout == whole


def test_a_table_of_many_pods_is_drawn_in_steps_that_grow_with_its_lines():
    """Counted in calls, since seconds say how busy the machine is: rich takes 700 a line."""

    def calls(lines):
        profile = cProfile.Profile()
        rows = [TableRow(f"shop/web-{number}", ("0", "30 s", "20 s", "20 s"), ["cut short"]) for number in range(lines)]
        profile.enable()
        try:
            print_number_table(Console(width=80), ("  pod", "priority", "asks", "gets", "SIGTERM"), rows)
        finally:
            profile.disable()
        return sum(entry.callcount for entry in profile.getstats())

    calls(1)
    few, many = calls(100), calls(1100)
    assert (many - few) / 1000 < 60


@pytest.mark.parametrize("width", [20, 40, 69, 70, 80, 200])
def test_the_demo_loses_no_name_in_a_narrow_terminal(width):
    console = Console(width=width, file=io.StringIO())
    view = DemoView(console, lambda: 5.0)
    long = virtual_parts.pod("log-shipper-of-the-system-qqlv5")
    view.show_event(PhaseStarted(at=0.0, index=0, seconds=10.0))
    view.add_pod(long, "Running")
    view.show_event(
        PodStarted(
            at=1.0,
            uid=long.metadata.uid,
            namespace=long.metadata.namespace,
            name=long.metadata.name,
            priority=0,
            phase=0,
            grace=10.0,
            asked=30,
            containers=("main",),
        )
    )
    console.print(view.to_table())
    columns = "".join(line.split()[0] for line in console.file.getvalue().splitlines() if line.strip())
    assert long.key in columns
    assert "running" in console.file.getvalue()
