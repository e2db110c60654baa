"""What the verbs draw as tables: it can be pasted, compared and committed as it is."""

import cProfile
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.failover.snapshots import lease, out, pod, state

from lastcall.cli.main import cli
from lastcall.cli.tables import TableRow, print_number_table
from lastcall.cli.terminal import Terminal, stdout_terminal

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
            print_number_table(Terminal(80), ("  pod", "priority", "asks", "gets", "SIGTERM"), rows)
        finally:
            profile.disable()
        return sum(entry.callcount for entry in profile.getstats())

    calls(1)
    few, many = calls(100), calls(1100)
    assert (many - few) / 1000 < 60


class Screen:
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colours_only_on_a_terminal_that_wants_them(environment, coloured, monkeypatch):
    for name, value in ({"NO_COLOR": "", "TERM": "xterm", "COLUMNS": "33"} | environment).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", Screen())
    assert stdout_terminal() == Terminal(33, coloured)


def test_a_pipe_gets_whole_lines_without_colours(monkeypatch, capsys):
    monkeypatch.delenv("COLUMNS", raising=False)
    terminal = stdout_terminal()
    assert (terminal.width > 1000, terminal.coloured) == (True, False)
