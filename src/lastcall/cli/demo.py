"""``lastcall demo``: a node with a dozen pods goes down before your eyes."""

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
    """A node with a dozen pods goes down before your eyes; half a minute, and only a report stays.

    The pods are real processes (with --runtime containerd, as root, real containers); the power button is not this
    machine's. The report is left in a temporary directory.
    """
    from rich.console import Console

    from lastcall.lab.demo.program import Demo

    directory = Path(tempfile.mkdtemp(prefix="lastcall-demo-"))
    with _endpoint(runtime) as endpoint:
        demo = Demo(directory, endpoint=endpoint, logind=logind, console=Console())
        path = asyncio.run(demo.run())
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
