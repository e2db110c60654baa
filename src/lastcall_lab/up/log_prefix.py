"""Whose a log line is: several machines run in one process, and what runs on them does not say on which."""

import contextlib
import logging
from collections.abc import Iterator
from contextvars import ContextVar

_machine: ContextVar[str] = ContextVar("machine", default="")


@contextlib.contextmanager
def log_as_machine(machine: str) -> Iterator[None]:
    """What is logged by tasks that are started within is of this machine."""
    before = _machine.set(machine)
    try:
        yield
    finally:
        _machine.reset(before)


def prefix_machine_names(handler: logging.Handler) -> None:
    """The handler's lines that are of a machine begin with its name from now on. It must be the only handler."""
    handler.addFilter(_add_machine_name)


def _add_machine_name(record: logging.LogRecord) -> bool:
    if machine := _machine.get():
        record.msg = f"{machine}: {record.msg}"
    return True
