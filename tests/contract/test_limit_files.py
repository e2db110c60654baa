"""The files that set logind's limit: real ones and the fake."""

import asyncio

import pytest

from lastcall.adapters.logind.delay_limit_files import LogindConf
from lastcall_lab.fakes.delay_limit_files import FakeLimitFiles

OURS = "zz-lastcall.conf"


@pytest.fixture(params=["fake", "real"])
def files(request, tmp_path):
    if request.param == "fake":
        files = FakeLimitFiles()
        return files, files.put
    directory = tmp_path / "etc/systemd/logind.conf.d"
    directory.mkdir(parents=True)

    def put(name, value):
        (directory / name).write_text(f"[Login]\nInhibitDelayMaxSec={value}\n")

    return LogindConf(tmp_path), put


def settings(files):
    return [(setting.path, setting.value) for setting in files.list_drop_ins()]


def test_ours_is_written_once(files):
    files, _ = files
    assert settings(files) == []
    assert files.write_limit(45)
    assert settings(files) == [(f"/etc/systemd/logind.conf.d/{OURS}", "45")]
    assert not files.write_limit(45)


def test_the_settings_come_in_the_order_in_which_they_are_read(files):
    files, put = files
    put("b.conf", "1min 30s")
    put("99-kubelet.conf", "30")
    put("a.conf", "20")
    assert [value for _, value in settings(files)] == ["30", "20", "1min 30s"]


def test_nothing_is_written_if_enough_is_granted(files):
    files, put = files
    put("99-kubelet.conf", "1min")
    assert not files.write_limit(45)
    assert len(settings(files)) == 1


def test_no_limit_is_lowered(files):
    files, put = files
    put("10-admin.conf", "2min")
    put("99-kubelet.conf", "30")
    assert files.write_limit(45)
    assert settings(files)[-1] == (f"/etc/systemd/logind.conf.d/{OURS}", "120")
    assert not files.write_limit(20)
    assert settings(files)[-1][1] == "120"


def test_an_unlimited_one_is_not_taken_over(files):
    files, put = files
    put("10-admin.conf", "infinity")
    put("99-kubelet.conf", "30")
    assert files.write_limit(45)
    assert settings(files)[-1][1] == "45"


def test_beaten_by_a_rival_it_is_not_written_again_and_again(files):
    files, put = files
    put("zzz.conf", "10")
    assert files.write_limit(45)
    assert not files.write_limit(45)
    assert [value for _, value in settings(files)] == ["45", "10"]


async def changes(files):
    async with asyncio.timeout(60):
        await files.wait_for_change()


async def test_a_change_is_told_once_and_our_own_is_none(files):
    files, put = files
    put("a.conf", "20")
    waiting = asyncio.ensure_future(changes(files))
    await asyncio.sleep(0.1)
    if waiting.done():  # what was there before the first call may count
        waiting = asyncio.ensure_future(changes(files))
        await asyncio.sleep(0.1)
    assert files.write_limit(45)
    await asyncio.sleep(2.5)
    assert not waiting.done()
    put("zzz.conf", "8")
    await waiting
    waiting = asyncio.ensure_future(changes(files))
    await asyncio.sleep(2.5)
    assert not waiting.done()
    put("zzz.conf", "9")
    await waiting
