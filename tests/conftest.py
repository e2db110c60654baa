"""A call in lastcall's code that blocks the event loop fails its test."""

from collections.abc import Iterator

import pytest
from blockbuster import blockbuster_ctx

ALLOWED = {
    # Some bytes in the page cache: a thread would cost more, and SIGTERM would have to wait for it.
    "lastcall/adapters/processes/files.py": (
        *("__init__", "create", "forbid", "exit_code", "ended_at", "sigterm_sent", "record_sigterm", "_text"),
        *("load", "forget", "delete", "boot_id"),
    ),
    # /proc is memory.
    "lastcall/adapters/processes/process.py": ("_current",),
    # Starting a pod: whether its program and directory are there, who its user is.
    "lastcall/adapters/processes/spec.py": ("check", "command"),
    # Until the hook's program runs, as long as fork and exec take.
    "lastcall/adapters/processes/exec_hook.py": ("_spawn",),
}
"""Where lastcall may block the loop: file -> functions, each with the reason."""


@pytest.fixture(autouse=True, scope="session")
def blocking_calls_fail() -> Iterator[None]:
    with blockbuster_ctx("lastcall") as blockbuster:
        for function in blockbuster.functions.values():
            for file, names in ALLOWED.items():
                function.can_block_in(file, names)
        yield
