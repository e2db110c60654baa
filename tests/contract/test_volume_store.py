"""What both shelves promise: the one of directories, and the one in memory that stands for it in virtual time."""

import pytest

from lastcall.errors import InvalidInput, Unavailable
from lastcall_lab.volumes.volume_store import DirectoryVolumes, InMemoryVolumes


@pytest.fixture(params=["directories", "imagined"])
def shelf(request, tmp_path):
    return DirectoryVolumes(tmp_path / "volumes") if request.param == "directories" else InMemoryVolumes()


async def test_what_is_written_through_a_door_is_in_the_volume(shelf):
    await shelf.make("v")
    await shelf.make("v")
    await shelf.open("v", "n1")
    await shelf.open("v", "n1")
    await shelf.open("v", "n2")
    await shelf.append("v", "n1", "log", b"one")
    await shelf.append("v", "n2", "log", b"two")
    await shelf.make("v")
    assert await shelf.read("v", "log") == b"one\ntwo\n"
    assert await shelf.read("v", "other") == b""


async def test_a_door_that_is_shut_leads_nowhere(shelf):
    await shelf.make("v")
    await shelf.open("v", "n1")
    await shelf.shut("v", "n1")
    await shelf.shut("v", "n1")
    await shelf.shut("v", "n2")
    with pytest.raises(Unavailable, match="volume v is not there"):
        await shelf.append("v", "n1", "log", b"x")
    await shelf.open("v", "n1")
    await shelf.append("v", "n1", "log", b"y")
    assert await shelf.read("v", "log") == b"y\n"


async def test_what_is_removed_is_gone(shelf, tmp_path):
    await shelf.make("v")
    await shelf.open("v", "n1")
    await shelf.append("v", "n1", "log", b"x")
    await shelf.remove("v")
    await shelf.remove("v")
    for attempt in (shelf.read("v", "log"), shelf.append("v", "n1", "log", b"x")):
        with pytest.raises(Unavailable, match="volume v is not there"):
            await attempt
    await shelf.make("v")
    assert await shelf.read("v", "log") == b""
    await shelf.unlink(tmp_path / "never")


@pytest.mark.parametrize("name", ["", "..", "../up", "a/b", ".hidden", "x" * 129, "a b"])
async def test_names_that_would_lead_elsewhere(shelf, name):
    with pytest.raises(InvalidInput, match="must consist of letters"):
        await shelf.make(name)
    with pytest.raises(InvalidInput, match="must consist of letters"):
        await shelf.open("v", name)
