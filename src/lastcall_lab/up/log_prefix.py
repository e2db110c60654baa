"""Prefixes log lines with the machine's name: several machines run in one process."""

import contextlib
import logging
from collections.abc import Iterator
from contextvars import ContextVar

_machine: ContextVar[str] = ContextVar("machine", default="")


@contextlib.contextmanager
def log_as_machine(machine: str) -> Iterator[None]:
    """Log records of tasks that start within belong to this machine."""
    before = _machine.set(machine)
    try:
        yield
    finally:
        _machine.reset(before)


def prefix_machine_names(handler: logging.Handler) -> None:
    """Prefixes the handler's lines of a machine with its name. It must be the only handler."""
    handler.addFilter(_add_machine_name)


def _add_machine_name(record: logging.LogRecord) -> bool:
    if machine := _machine.get():
        record.msg = f"{machine}: {record.msg}"
    return True
