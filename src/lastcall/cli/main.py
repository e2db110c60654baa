"""The command ``lastcall``: verbs are imported when they are called, so that ``--help`` is fast."""

import difflib
import errno
import importlib
import os
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

import click

from lastcall import __version__
from lastcall.errors import LastcallError
from lastcall.model.foreign_text import plain_lines

_VERBS = {
    "agent": ("lastcall.cli.agent", "Ends this node's pods in order when the machine shuts down."),
    "controller": ("lastcall.cli.controller", "Fails over nodes that are gone, by proof."),
    "doctor": (
        "lastcall.cli.doctor",
        "Checks whether this machine's shutdown will be graceful, and says what to mend.",
    ),
    "drain": ("lastcall.cli.drain", "Empties nodes, or says beforehand what stands in the way."),
    "drill": ("lastcall.cli.drill", "A rehearsal: what a shutdown of a node would do now; nothing is ended."),
    "failover": ("lastcall.cli.failover", "What may be forced when a node is gone, and why."),
    "guard": ("lastcall.cli.guard", "Pods that are not deleted until their application is ready."),
    "manifests": ("lastcall.cli.manifests", "What lastcall needs in a cluster, as YAML for kubectl apply -f -."),
    "plan": ("lastcall.cli.plan", "Which pods would be ended when, and with how much time."),
    "shutdown-notice": (
        "lastcall.cli.shutdown_notice",
        "Tells this node's agent that the machine shuts down, or stays up.",
    ),
    "report": ("lastcall.cli.report", "What happened in a shutdown, as a timeline."),
    "status": (
        "lastcall.cli.status",
        "How each node of the cluster stands: armed or not, its last shutdown, problems.",
    ),
}


_LAB_VERBS = ("demo", "lab", "simulate")
"""Verbs of the distribution ``lastcall-lab``, which a node is installed without."""

_VERB_GROUP = "lastcall.verbs"
"""The entry points by which another distribution adds verbs; each is a ``click.Command`` with a ``short_help``."""

_OF_THE_LAB = ("cel", "cryptography", "re2", "sushy", "uvicorn", "websockets")
"""Modules of the extra ``lab``, which a node is installed without."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@cache
def _added_verbs() -> Mapping[str, EntryPoint]:
    return {one.name: one for one in entry_points(group=_VERB_GROUP)}


class _Verbs(click.Group):
    """A group that imports its commands only when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*_VERBS, *_added_verbs()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command: click.Command
        if cmd_name in _VERBS:
            command = importlib.import_module(_VERBS[cmd_name][0]).command
        elif cmd_name in _added_verbs():
            command = _added_verbs()[cmd_name].load()
        else:
            return None
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggests similar verbs for a mistyped one: click alone knows only imported verbs."""
        verb = args[0]
        if verb in _VERBS or verb in _added_verbs() or verb.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        if verb in _LAB_VERBS:
            raise click.UsageError(f"{verb} is part of the lab: install it by pip install 'lastcall[lab]'", ctx)
        near = difflib.get_close_matches(verb, self.list_commands(ctx))
        meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise click.UsageError(f"No such command {verb!r}.{meant}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._short_help(ctx, name)) for name in self.list_commands(ctx)])

    def _short_help(self, ctx: click.Context, name: str) -> str:
        if name in _VERBS:
            return _VERBS[name][1]
        command = self.get_command(ctx, name)
        return (command.short_help if command else "") or ""


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lastcall")
def cli() -> None:
    """Gives every pod its last call: when a node shuts down, the work on it ends well.

    Exit codes: 0 done; 1 a finding or a failure; 2 usage or invalid input; 3 refused for safety; 4 timed out.
    """


def main(program: str = "lastcall") -> None:
    """Runs the command line; prints a LastcallError as its message and exits with its code.

    A full disk and a missing part of lastcall are reported too, with exit code 1. ``program``: its name in help and
    messages.
    """
    try:
        cli(prog_name=program)
    except LastcallError as error:
        click.echo(plain_lines(f"{program}: {error}"), err=True)
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        if error.name not in _OF_THE_LAB:
            raise
        click.echo(
            f"{program}: the Python package {error.name} is missing: install lastcall with its extra lab, "
            "by pip install 'lastcall[lab]', or '.[lab]' in a checkout",
            err=True,
        )
        sys.exit(1)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        click.echo(f"{program}: {os.strerror(error.errno)}", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise the exit would flush there
        sys.exit(1)
