"""``lastcall demo``: shows how a node of a small cluster shuts down."""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Coroutine, Iterator
from pathlib import Path

import click

from lastcall.aio import cancel_and_wait, wait_any
from lastcall.errors import TimedOut


@click.command("demo", short_help="Three nodes: one shuts down, one loses its power; a database is drained.")
@click.option("--runtime", type=click.Choice(["processes", "containerd"]), default="processes", show_default=True)
@click.option(
    "--logind",
    type=click.Choice(["embedded", "private"]),
    default="embedded",
    show_default=True,
    help="private: systemd-logind itself, on a bus of its own that can power off nothing.",
)
def command(runtime: str, logind: str) -> None:
    """Three nodes with a shop on them, under load; one shuts down in order, one loses its power, and all comes up elsewhere.

    At last the leader of a database is evicted, without the guard and with it.

    The pods are real processes; the power button is not this machine's. It takes two minutes; only a report stays, in a
    temporary directory. With --runtime containerd (as root) or --logind private, one node with real containers, or
    with systemd-logind itself, shuts down instead.
    """
    from lastcall_lab.demo import cluster_demo, single_node
    from lastcall_lab.demo.console import stdout_console

    with _temporary_directory() as directory:
        files = directory / "files"
        files.mkdir()
        if runtime == "processes" and logind == "embedded":
            page = asyncio.run(_run_until_signal(cluster_demo.ClusterDemo(files, console=stdout_console()).run()))
        else:
            with _runtime_endpoint(runtime) as endpoint:
                one = single_node.SingleNodeDemo(files, endpoint=endpoint, logind=logind, console=stdout_console())
                page = asyncio.run(_run_until_signal(one.run()))
        page = page.rename(directory / page.name)
        shutil.rmtree(files, ignore_errors=True)
    click.echo(f"\nWhat happened, as a page with a chart; open it in a browser:\n  {page.as_uri()}")


async def _run_until_signal(demo: Coroutine[object, object, Path]) -> Path:
    """Runs the demo and returns its result; raises Abort at a signal, after everything has ended."""
    from lastcall_lab.up.signals import call_at_signals

    interrupted = asyncio.Event()
    call_at_signals(interrupted.set)
    showing, waiting = asyncio.ensure_future(demo), asyncio.ensure_future(interrupted.wait())
    try:
        await wait_any(showing, waiting)
        if interrupted.is_set():
            raise click.Abort
        return showing.result()
    finally:
        await cancel_and_wait(showing, waiting)


@contextlib.contextmanager
def _temporary_directory() -> Iterator[Path]:
    """A temporary directory. It stays after success and after a hang, so that its files can be examined."""
    directory = Path(tempfile.mkdtemp(prefix="lastcall-demo-"))
    try:
        yield directory
    except TimedOut:
        raise
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise


@contextlib.contextmanager
def _runtime_endpoint(runtime: str) -> Iterator[str | None]:
    if runtime == "processes":
        yield None
        return
    from lastcall.errors import LastcallError
    from lastcall_lab.containerd import PrivateContainerd, unavailable_reason

    if reason := unavailable_reason():
        raise LastcallError(f"--runtime containerd: {reason}")
    containerd = PrivateContainerd()
    containerd.start()
    try:
        yield containerd.endpoint
    finally:
        containerd.stop()
        containerd.clean_up()
