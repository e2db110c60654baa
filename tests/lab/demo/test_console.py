"""What the demo draws contains no control sequences of foreign text."""

import io

import pytest
from rich.console import Console
from support.agents import virtual_parts

from lastcall.model.shutdown import PhaseStarted, PodStarted
from lastcall_lab.demo.console import stdout_console
from lastcall_lab.demo.view import DemoView

EVIL = "web\x1b[2J\x9b31m\r\u2028\u202e\x00\nERROR   all is well \ud800[bold red]"


def test_what_is_drawn_steers_no_terminal(capsys):
    console = stdout_console()
    console.print(EVIL, style="yellow")
    assert all(line.isprintable() for line in capsys.readouterr().out.split("\n"))


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
