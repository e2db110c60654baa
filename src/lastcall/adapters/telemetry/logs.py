"""Log lines for people and for log collectors."""

import logging
import sys

import msgspec

from lastcall.model.foreign_text import plain_lines, plain_text

_FURTHER = "    "
"""Prefix of an entry's further lines, so that none looks like another entry."""


class _TextFormatter(logging.Formatter):
    """Time, level and message on one line. Foreign text can neither fake an entry nor control a terminal.

    Only errors of lastcall may have several lines: those that list what is wrong with a file.
    """

    def format(self, record: logging.LogRecord) -> str:
        if isinstance(record.args, tuple):
            arguments = tuple(plain_text(one) if isinstance(one, str) else one for one in record.args)
            if arguments != record.args:  # rare: a copy costs as much as the rest
                record = logging.makeLogRecord({**record.__dict__, "args": arguments})
        return plain_lines(super().format(record), _FURTHER)


class _JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage().encode(errors="backslashreplace").decode(),
        }
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(entry).decode()


def configure_logging(*, as_json: bool, verbose: bool) -> None:
    """Logs level info (``verbose``: debug) and above to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    text = _TextFormatter("%(asctime)s.%(msecs)03d %(levelname)-7s %(message)s", "%Y-%m-%dT%H:%M:%S")
    handler.setFormatter(_JsonFormatter() if as_json else text)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.getLogger("lastcall").setLevel(logging.DEBUG if verbose else logging.INFO)
