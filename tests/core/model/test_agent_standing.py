"""What an agent says of itself on its Node, and when it is written again."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from lastcall import names
from lastcall.model.agent_standing import (
    LEAST_SECONDS,
    RENEW_SECONDS,
    SILENT_SECONDS,
    AgentStanding,
    is_silent,
    is_write_due,
    read_standing,
    standing_annotations,
)
from lastcall.model.shutdown import ShutdownMode

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ARMED = AgentStanding(
    armed=True,
    mode=ShutdownMode.ENFORCE,
    message="armed",
    requested_seconds=30.0,
    granted_seconds=30.0,
    boot_id="b1",
    version="1",
    reported=NOW,
)
LATER = structs.replace(ARMED, reported=NOW + timedelta(seconds=5))
LOST = structs.replace(ARMED, armed=False, message="not armed: logind went away")


@pytest.mark.parametrize(
    ("standing", "written", "seconds", "due"),
    [
        (ARMED, None, 0.0, True),
        (LATER, ARMED, RENEW_SECONDS - 1, False),
        (LATER, ARMED, RENEW_SECONDS, True),
        (LOST, ARMED, LEAST_SECONDS - 1, False),
        (LOST, ARMED, LEAST_SECONDS, True),
    ],
    ids=["the first", "unchanged", "unchanged for long", "changed again at once", "changed"],
)
def test_changes_are_written_soon_and_the_rest_now_and_then(standing, written, seconds, due):
    assert is_write_due(standing, written, seconds) is due


def test_it_is_read_as_it_was_written():
    written = standing_annotations(structs.replace(ARMED, pod_uid="u", lost_identities=("own",), kubelet_lock=True))
    assert read_standing(written) == structs.replace(ARMED, pod_uid="u", lost_identities=("own",), kubelet_lock=True)
    assert '"bootID":"b1"' in written[names.AGENT_STANDING]
    assert standing_annotations(None) == {names.AGENT_STANDING: None}


@pytest.mark.parametrize("text", ["", "{}", "yes", '{"armed":true}'])
def test_one_that_cannot_be_read_counts_as_none(text):
    assert read_standing({names.AGENT_STANDING: text}) is None
    assert read_standing(None) is None


@pytest.mark.parametrize("seconds", [SILENT_SECONDS + 1, -SILENT_SECONDS - 1])
def test_an_old_one_proves_nothing_nor_does_one_from_the_future(seconds):
    assert is_silent(ARMED, NOW + timedelta(seconds=seconds))
    assert not is_silent(ARMED, NOW + timedelta(seconds=SILENT_SECONDS))
