"""Every controller of the lab can be switched off, by its name and alone."""

import pytest

from lastcall.errors import InvalidInput
from lastcall_lab import virtual
from lastcall_lab.control_plane.controller_set import make_controllers
from lastcall_lab.volumes.storage import Storage
from lastcall_lab.volumes.volume_store import InMemoryVolumes


def names(without=()):
    return [
        one.name
        for one in make_controllers("PEM", storage=Storage(InMemoryVolumes(), virtual.VirtualClock()), without=without)
    ]


def test_each_by_its_name():
    everybody = names()
    assert len(set(everybody)) == len(everybody) == 21
    for name in everybody:
        assert names([name]) == [one for one in everybody if one != name]


def test_several_and_all():
    everybody = names()
    assert names(everybody[:3]) == everybody[3:]
    assert names(everybody) == []


def test_who_is_none():
    with pytest.raises(InvalidInput, match='"nobody" is no controller'):
        names(["nobody"])
