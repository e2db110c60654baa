"""``--config`` of the verbs of ``lastcall guard``."""

from typing import TYPE_CHECKING

import click

from lastcall.cli import options

if TYPE_CHECKING:
    from lastcall.model.guard_config import GuardConfig

option = click.option(
    "--config",
    metavar="FILE",
    help="A GuardConfiguration: what holds for all GuardPolicies.  [default: the defaults of all its fields]",
)


def read_config(path: str | None) -> "GuardConfig":
    """The settings in the file, or the defaults without one. InvalidInput names field, value and rule."""
    from lastcall.model.guard_config import DEFAULTS, parse_guard_config

    return parse_guard_config(options.read_content(path), options.source_name(path)) if path else DEFAULTS
