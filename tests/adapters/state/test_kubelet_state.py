"""The file in which a kubelet keeps when a shutdown began and ended, as the agent writes it beside its journals."""

import asyncio
import json
import os
import stat
from datetime import datetime

import pytest

from lastcall.adapters.state.journal_files import JournalFiles


@pytest.mark.parametrize(
    ("start_", "end_", "expected"),
    [
        (None, None, {"startTime": "0001-01-01T00:00:00Z", "endTime": "0001-01-01T00:00:00Z"}),
        (1795262824.5, None, {"startTime": "2026-11-21T12:07:04.5Z", "endTime": "0001-01-01T00:00:00Z"}),
        (1795262820.0, 1795262824.25, {"startTime": "2026-11-21T12:07:00Z", "endTime": "2026-11-21T12:07:04.25Z"}),
    ],
)
def test_the_state_file_is_what_the_kubelet_would_write(tmp_path, start_, end_, expected):
    asyncio.run(JournalFiles(tmp_path).write_kubelet_state(start_, end_))
    path = tmp_path / "graceful_node_shutdown_state"
    assert path.read_text() == json.dumps(expected, separators=(",", ":"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    datetime.fromisoformat(expected["startTime"])


def test_a_state_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    journals = JournalFiles(tmp_path)
    asyncio.run(journals.write_kubelet_state(1.0, None))
    before = (tmp_path / "graceful_node_shutdown_state").read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        asyncio.run(journals.write_kubelet_state(2.0, 3.0))
    assert (tmp_path / "graceful_node_shutdown_state").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1
