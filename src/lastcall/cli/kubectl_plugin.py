"""``kubectl lastcall``: the same command line as a plugin of kubectl, and its completion.

kubectl runs ``kubectl-lastcall`` for ``kubectl lastcall``, and ``kubectl_complete-lastcall`` with the words so far for
the Tab key (since 1.26). The answer is that of cobra: a line for each word, with its help behind a tab, and a directive.
"""

import sys
from typing import Final

import click
from click.shell_completion import CompletionItem, ShellComplete

from lastcall.cli.main import cli, main

PROGRAM = "kubectl lastcall"

_FILES: Final = ":0"
_NO_FILES: Final = ":4"
_DIRECTORIES: Final = ":16"
"""Directives of cobra: what the shell may complete beside the words (ShellCompDirective)."""


def run_plugin() -> None:
    """The entry point ``kubectl-lastcall``."""
    main(PROGRAM)


def complete_plugin() -> None:
    """The entry point ``kubectl_complete-lastcall``; the last argument is the word that is being typed."""
    *words, begun = sys.argv[1:] or [""]
    found = ShellComplete(cli, {}, PROGRAM, "_LASTCALL_COMPLETE").get_completions(words, begun)
    click.echo("\n".join(completion_lines(found)))


def completion_lines(items: list[CompletionItem]) -> list[str]:
    """The answer to kubectl: the words, and what the shell may complete beside them: files if there are no words."""
    words = [f"{one.value}\t{one.help}" if one.help else str(one.value) for one in items if one.type == "plain"]
    if any(one.type == "dir" for one in items):
        return [*words, _DIRECTORIES]
    return [*words, _NO_FILES if words else _FILES]
