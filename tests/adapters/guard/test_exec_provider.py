"""The provider exec: exit codes and outputs of commands, which run here as local processes."""

import pytest
from support.guard.members import Loopback, gone, member

from lastcall.adapters.guard.exec_provider import ExecProviderFactory
from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall.model.pods import PodStatus


def shell(text):
    return ["sh", "-c", text]


def executing(access=None, **commands):
    settings = {"prepare": shell("true"), "progress": shell("true"), **commands}
    return ExecProviderFactory().make_provider(settings, access or Loopback())


PROGRESS = {
    "ready": ("true", "ready", None, ""),
    "in progress": ("echo '2 left' >&2; echo more >&2; exit 75", "preparing", None, "2 left"),
    "stalled": ("echo frozen >&2; exit 69", "stalled", None, "frozen"),
    "figures": ("""echo '{"percent": 40, "message": "moving"}'; exit 75""", "preparing", 40, "moving"),
    "stalled with a message": ("""echo '{"message": "frozen"}'; echo no >&2; exit 69""", "stalled", None, "frozen"),
    "lost": ("""echo '{"state": "lost"}'""", "lost", None, ""),
    "ready is taken back": ("""echo '{"state": "preparing", "percent": 1}'""", "preparing", 1, ""),
    "the exit code decides": ("""echo '{"state": "ready"}'; exit 75""", "preparing", None, ""),
    "a stall is no readiness": ("""echo '{"state": "ready"}'; exit 69""", "stalled", None, ""),
    "text is no answer": ("echo done; echo '{'", "ready", None, ""),
}


@pytest.mark.parametrize(("command", "progress", "percent", "message"), PROGRESS.values(), ids=PROGRESS)
async def test_what_a_command_says_of_the_progress(command, progress, percent, message):
    report = await executing(progress=shell(command)).check_progress(member(0))
    assert (report.progress.value, report.percent, report.message) == (progress, percent, message)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "echo ' a\x1bb'; echo ' no\x07 way ' >&2; exit 1",
            "^progress failed: exit code 1: no\N{REPLACEMENT CHARACTER} way$",
        ),
        ("exit 64", "^progress failed: exit code 64$"),
        ("kill -9 $$", "progress failed: exit code"),
        ("echo '{\"percent\": -1}'", "percent: -1: must be a number >= 0"),
        ("echo '{oops'", "no JSON"),
        ("yes '{' | head -c 5000000", "no JSON"),
    ],
)
async def test_a_command_that_fails(command, words):
    with pytest.raises(LastcallError, match=words) as caught:
        await executing(progress=shell(command)).check_progress(member(0))
    assert not isinstance(caught.value, (Unavailable, TimedOut))
    assert len(str(caught.value)) < 500


async def test_a_command_that_does_not_end():
    with pytest.raises(TimedOut, match="progress has not ended in 1 s"):
        await executing(progress=shell("exec sleep 60"), timeoutSeconds=1).check_progress(member(0))


async def test_a_preparation_is_begun_or_done():
    for code in (0, 75):
        await executing(prepare=shell(f"exit {code}")).prepare(member(0))
    for code in (1, 69, 127):
        with pytest.raises(LastcallError, match=f"prepare failed: exit code {code}"):
            await executing(prepare=shell(f"exit {code}")).prepare(member(0))


@pytest.mark.parametrize("verb", ["cancel", "release"])
async def test_the_end_of_a_preparation(verb):
    access = Loopback()
    await getattr(executing(access), verb)(member(0))
    assert access.commands == []
    await getattr(executing(**{verb: shell("true")}), verb)(member(0))
    with pytest.raises(Unavailable, match=f"{verb} has not ended yet"):
        await getattr(executing(**{verb: shell("exit 75")}), verb)(member(0))
    with pytest.raises(LastcallError, match=f"{verb} failed: exit code 2: no"):
        await getattr(executing(**{verb: shell("echo no >&2; exit 2")}), verb)(member(0))


async def test_health():
    for command, healthy, message in (
        ("true", True, ""),
        ("echo 'one short' >&2; exit 1", False, "exit code 1: one short"),
        ("""echo '{"healthy": false, "message": "one short"}'""", False, "one short"),
        ("""echo '{"healthy": true}'; exit 1""", False, "exit code 1"),
    ):
        found = await executing(health=shell(command)).check_health(member(0))
        assert (found.is_healthy, found.message) == (healthy, message)
    with pytest.raises(LastcallError, match="health failed: exit code 127"):
        await executing(health=shell("no-such-program 2>/dev/null")).check_health(member(0))


async def test_health_without_a_command_is_readiness():
    from msgspec.structs import replace

    provider, all_ready = executing(), member(0)
    assert (await provider.check_health(all_ready)).is_healthy
    assert (await provider.check_health(gone(0))).is_healthy
    second = replace(all_ready.others[1], status=PodStatus(phase="Running"))
    found = await provider.check_health(replace(all_ready, others=(all_ready.others[0], second)))
    assert (found.is_healthy, found.message) == (False, "not ready: redis-2")


async def test_where_a_command_runs_and_what_it_is_told():
    access = Loopback()
    told = shell("test $(POD_NAMESPACE)/$(POD_NAME)/$(POD_UID) = shop/redis-0/uid-0; : $(OTHER)")
    told[2] = told[2].replace("$(OTHER)", "'$(OTHER)'")
    provider = executing(access, prepare=told, release=told, container="db")
    await provider.prepare(member(0))
    await provider.release(gone(0))
    expected = told[2].replace("$(POD_NAMESPACE)/$(POD_NAME)/$(POD_UID)", "shop/redis-0/uid-0")
    assert access.commands == [("redis-0", "db", ("sh", "-c", expected)), ("redis-1", "db", ("sh", "-c", expected))]
    with pytest.raises(Unavailable, match="no pod of the application runs"):
        await provider.release(gone(0, of=1))


@pytest.mark.parametrize(
    ("settings", "violation"),
    [
        ({}, "spec.provider.exec.prepare: missing: must be given"),
        ({"prepare": "x", "progress": ["x"]}, 'spec.provider.exec.prepare: "x": must be a list'),
        ({"prepare": [], "progress": ["x"]}, "spec.provider.exec.prepare: []: must be a program and its arguments"),
        ({"prepare": ["x"], "progress": ["x", 1]}, "spec.provider.exec.progress[1]: 1: must be text"),
        (
            {"prepare": ["x"], "progress": ["x"], "reversible": True},
            "spec.provider.exec.reversible: true: needs cancel",
        ),
        (
            {"prepare": ["x"], "progress": ["x"], "cancell": []},
            "spec.provider.exec.cancell: []: unknown field, did you mean cancel?",
        ),
        ({"prepare": ["x"], "progress": ["x"], "timeoutSeconds": 26}, "spec.provider.exec.timeoutSeconds: 26: must be"),
    ],
)
def test_settings_that_it_does_not_take(settings, violation):
    found = ExecProviderFactory().check_settings(settings)
    assert any(one.startswith(violation) for one in found), found
