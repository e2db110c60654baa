"""``lastcall demo``: a node of a small cluster goes down before your eyes."""

import asyncio
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click


@click.command("demo")
@click.option("--runtime", type=click.Choice(["processes", "containerd"]), default="processes", show_default=True)
@click.option(
    "--logind",
    type=click.Choice(["embedded", "private"]),
    default="embedded",
    show_default=True,
    help="private: systemd-logind itself, on a bus of its own that can power off nothing.",
)
def command(runtime: str, logind: str) -> None:
    """Three nodes with a shop on them, under load; one goes down before your eyes, and all comes up elsewhere.

    The pods are real processes; the power button is not this machine's. A minute, and only a report stays, in a
    temporary directory. With --runtime containerd (as root) or --logind private, one node with real containers, or
    with systemd-logind itself, goes down instead.
    """
    from rich.console import Console

    from lastcall.lab.demo import one_node, program

    directory = Path(tempfile.mkdtemp(prefix="lastcall-demo-"))
    if runtime == "processes" and logind == "embedded":
        path = asyncio.run(program.Demo(directory, console=Console()).run())
    else:
        with _endpoint(runtime) as endpoint:
            one = one_node.Demo(directory, endpoint=endpoint, logind=logind, console=Console())
            path = asyncio.run(one.run())
    click.echo(f"\nThe same as a page: {path}")


@contextlib.contextmanager
def _endpoint(runtime: str) -> Iterator[str | None]:
    if runtime == "processes":
        yield None
        return
    from lastcall.errors import LastcallError
    from lastcall.lab.containerd import PrivateContainerd, why_not

    if reason := why_not():
        raise LastcallError(f"--runtime containerd: {reason}")
    containerd = PrivateContainerd()
    containerd.start()
    try:
        yield containerd.endpoint
    finally:
        containerd.stop()
        containerd.clean_up()
