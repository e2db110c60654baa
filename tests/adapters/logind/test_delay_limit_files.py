"""Which logind configuration file sets the delay limit, and our drop-in; the real logind is asked what it takes."""

import asyncio

import pytest
from support.host.logind import eventually, private_logind  # noqa: F401  (a fixture)

from lastcall.adapters.logind.delay_limit_files import LogindConf
from lastcall.adapters.logind.session import SystemLogind
from lastcall.errors import NotPermitted
from lastcall.graceful import delay_limit
from lastcall.model import timespan

VENDOR = "unattended-upgrades-logind-maxdelay.conf"


def write(root, path, value, section="Login"):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"[{section}]\nInhibitDelayMaxSec={value}\n")
    return file


@pytest.fixture
def root(tmp_path):
    (tmp_path / "etc/systemd").mkdir(parents=True)
    return tmp_path


def found(root):
    return [(setting.path, setting.value) for setting in LogindConf(root).list_drop_ins()]


def test_no_file_sets_it(root):
    assert found(root) == []


def test_drop_ins_of_all_directories_are_sorted_by_name_and_come_after_the_main_file(root):
    write(root, "etc/systemd/logind.conf", 7)
    write(root, "usr/lib/systemd/logind.conf.d/" + VENDOR, 30)
    write(root, "run/systemd/logind.conf.d/b.conf", 2)
    write(root, "usr/local/lib/systemd/logind.conf.d/a.conf", 1)
    write(root, "etc/systemd/logind.conf.d/99-kubelet.conf", 45)
    assert [value for _, value in found(root)] == ["7", "45", "1", "2", "30"]
    assert found(root)[-1] == (f"/usr/lib/systemd/logind.conf.d/{VENDOR}", "30")


def test_an_earlier_directory_hides_its_namesakes(root):
    for value, directory in enumerate(("usr/lib", "usr/local/lib", "run", "etc")):
        write(root, f"{directory}/systemd/logind.conf.d/x.conf", value)
        assert [v for _, v in found(root)] == [str(value)]
    (root / "etc/systemd/logind.conf.d/x.conf").write_text("")
    assert found(root) == []


def test_a_link_to_dev_null_masks(root):
    write(root, "usr/lib/systemd/logind.conf.d/x.conf", 3)
    (root / "etc/systemd/logind.conf.d").mkdir()
    (root / "etc/systemd/logind.conf.d/x.conf").symlink_to("/dev/null")
    assert found(root) == []


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("[Login]\nInhibitDelayMaxSec=9\n", "9"),
        ("[Login]\n  InhibitDelayMaxSec = 1h 2min \n", "1h 2min"),
        ("[Login]\nInhibitDelayMaxSec=9\nInhibitDelayMaxSec=8\n", "8"),
        ("[Login]\nInhibitDelayMaxSec=9\nInhibitDelayMaxSec=\n", "9"),
        ("[Login]\nInhibitDelayMaxSec=9\nInhibitDelayMaxSec=abc\n", "9"),
        ("[Login]\n#InhibitDelayMaxSec=9\n;InhibitDelayMaxSec=9\n", None),
        ("[Other]\nInhibitDelayMaxSec=9\n", None),
        ("[Other]\nx=1\n[Login]\nInhibitDelayMaxSec=9\n", "9"),
        ("InhibitDelayMaxSec=9\n", None),
        ("[Login]\nInhibitDelayMaxSec=1h \\\n 2min\n", "1h   2min"),
        ("[Login]\ninhibitdelaymaxsec=9\n", None),
        ("\ufeff[Login]\nInhibitDelayMaxSec=9", "9"),
    ],
)
def test_a_file_is_read_as_logind_reads_it(root, content, value, private_logind):  # noqa: F811
    (root / "etc/systemd/logind.conf").write_text(content)
    assert [v for _, v in found(root)] == ([value] if value else [])
    private_logind.write_drop_in("a.conf", "[Login]\nInhibitDelayMaxSec=33\n")  # tells that it has been read
    private_logind.write_drop_in("b.conf", content)
    wanted = delay_limit.effective_seconds(LogindConf(private_logind.root).list_drop_ins())
    assert granted(private_logind, wanted) == wanted == (33.0 if value is None else timespan.parse(value))


def granted(private, wanted):
    """What the real logind grants after a reload: ``wanted``, or what it says after a while."""

    async def ask():
        session = await SystemLogind(private.address).open()
        await session.reload()
        try:
            return await eventually(session.max_delay, wanted)
        finally:
            session.close()

    return asyncio.run(ask())


def test_other_suffixes_do_not_count(root):
    write(root, "etc/systemd/logind.conf.d/zzz.conf.bak", 99)
    write(root, "etc/systemd/logind.conf.d/.tmp-zz-lastcall.confx", 99)
    assert found(root) == []


def test_ours_is_written_once(root):
    files = LogindConf(root)
    assert files.write_limit(45)
    path = root / "etc/systemd/logind.conf.d/zz-lastcall.conf"
    assert path.read_text().endswith("[Login]\nInhibitDelayMaxSec=45\n")
    assert path.stat().st_mode & 0o777 == 0o644
    before = path.stat().st_ino
    assert not files.write_limit(45)
    assert path.stat().st_ino == before
    assert list(path.parent.iterdir()) == [path]


def test_no_limit_is_lowered(root):
    files = LogindConf(root)
    files.write_limit(60)
    assert not files.write_limit(45)
    assert found(root)[-1][1] == "60"
    write(root, "etc/systemd/logind.conf.d/10-admin.conf", "2min")
    assert files.write_limit(90)
    assert found(root)[-1][1] == "120", "ours wins, so it takes over what the administrator grants"


def test_an_unlimited_one_is_not_taken_over(root):
    write(root, "etc/systemd/logind.conf.d/10-admin.conf", "infinity")
    assert not LogindConf(root).write_limit(45), "the files grant it already"
    write(root, "etc/systemd/logind.conf.d/20-admin.conf", "10")
    assert LogindConf(root).write_limit(45)
    assert found(root)[-1][1] == "45"


def test_beaten_by_a_rival_ours_is_not_written_again_and_again(root):
    write(root, "etc/systemd/logind.conf.d/zzz.conf", 10)
    files = LogindConf(root)
    assert files.write_limit(45)
    assert not files.write_limit(45)
    assert delay_limit.overriding_drop_in(files.list_drop_ins()) == files.list_drop_ins()[-1]


def test_a_directory_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(NotPermitted, match=r"logind.conf.d/zz-lastcall.conf cannot be written: No such file"):
        LogindConf(tmp_path / "missing").write_limit(45)


def test_ours_beats_the_kubelet_and_the_vendor_at_the_real_logind(private_logind):  # noqa: F811
    files = LogindConf(private_logind.root)
    private_logind.write_drop_in("99-kubelet.conf", "[Login]\nInhibitDelayMaxSec=40\n")
    private_logind.write_drop_in(VENDOR, "[Login]\nInhibitDelayMaxSec=30\n", "run/systemd")
    assert granted(private_logind, 30.0) == 30.0
    assert files.write_limit(45)
    assert granted(private_logind, 45.0) == 45.0
    private_logind.write_drop_in("zzz.conf", "[Login]\nInhibitDelayMaxSec=1min\n")
    assert granted(private_logind, 60.0) == 60.0
    assert delay_limit.overriding_drop_in(files.list_drop_ins()).path == "/etc/systemd/logind.conf.d/zzz.conf"
