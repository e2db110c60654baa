"""What a drain shows: on a terminal one line for each pod that is left, elsewhere a sentence when it changes."""

import pytest

from lastcall.cli.drain_view import DrainView
from lastcall.drain.decisions.drain_course import DrainCourse, NodeProgress
from lastcall.drain.decisions.pod_progress import PodProgress, PodTarget, SeenPod
from lastcall.drain.decisions.steps import NodeOutcome
from lastcall.model.budgets import SEVERAL
from lastcall.model.drain_limits import DrainLimits, TimeoutPolicy
from lastcall.model.drain_settings import DrainSettings

HELD = "held by GuardPolicy db: moving the leader (37% done)"
SEEN = {
    "uid-slow": SeenPod(terminating_since=90.0, grace=30),
    "uid-db": SeenPod(),
    "uid-web": SeenPod(),
    "uid-bad": SeenPod(),
    "uid-dns": SeenPod(),
    "uid-mine": SeenPod(opt_out="annotation karpenter.sh/do-not-disrupt: true keeps Karpenter from disrupting the pod"),
}


def pod(name, tier=0, **progress):
    target = PodTarget(uid=f"uid-{name}", namespace="shop", name=name, node="n1", tier=tier, owner=name)
    return PodProgress(target=target, **progress)


def course(**more):
    pods = (
        pod("gone"),
        pod("slow", accepted_at=90.0),
        pod("db", refusal=HELD, is_held=True, first_asked=60.0),
        pod("web", first_asked=99.0),
        pod("mine"),
        pod("bad", failure="it has two budgets"),
        pod("dns", tier=1),
    )
    return DrainCourse(
        settings=DrainSettings(),
        limits=more.pop("limits", DrainLimits()),
        nodes=(NodeProgress(name="n1", is_cordoned=True),),
        is_owned=True,
        pods=pods,
        seen=SEEN,
        asked=frozenset({"uid-web"}),
        **more,
    )


@pytest.fixture
def view():
    found = DrainView({("shop", "db"): "PodDisruptionBudget shop/db: covers it too; mend: leave one"})
    found._is_live = False
    return found


def test_one_line_for_each_pod_that_is_left(view, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("LINES", "40")
    view._is_live = True
    view.show(course(deadline=160.0, limits=DrainLimits(timeout=100, on_timeout=TimeoutPolicy.FORCE)), 100.0)
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in capsys.readouterr().err.splitlines()}
    left = "; 1m0s left (force)"
    assert lines["shop/slow"] == f"terminating for 10s of its 30s{left}"
    assert lines["shop/db"] == f"{HELD}{left}"
    assert lines["shop/web"] == f"eviction requested{left}"
    assert lines["shop/mine"].startswith("annotation karpenter.sh/do-not-disrupt: true")
    assert "(mend: --ignore-opt-outs)" in lines["shop/mine"]
    assert lines["shop/dns"] == f"its turn comes when the pods before it are gone{left}"
    assert "shop/gone" not in lines
    assert "shop/bad" not in lines
    assert lines["1"] == "of 7 pods are gone, 1 terminate, 1 wait, 1 failed"


def test_a_line_that_is_printed_takes_the_picture_away_and_it_comes_back(view, capsys):
    view._is_live = True
    view.show(course(), 100.0)
    drawn = capsys.readouterr().err.count("\n")
    view.tell_gone(pod("gone").target, evicts=True)
    printed = capsys.readouterr()
    assert printed.err == f"\x1b[{drawn}A\x1b[J"
    assert printed.out == "pod/gone evicted\n"
    view.show(course(), 100.1)
    assert capsys.readouterr().err == "", "not so often"
    view.tick(1.0)
    assert "shop/slow" in capsys.readouterr().err
    view.close()
    assert capsys.readouterr().err.endswith("\x1b[J1 of 7 pods are gone, 1 terminate, 1 wait, 1 failed\n")


def test_a_small_terminal(view, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "5")
    view._is_live = True
    view.show(course(), 100.0)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert lines[2] == "  ... and 3 more"
    assert max(map(len, lines)) < 40


def test_elsewhere_a_sentence_when_it_changes(view, capsys):
    for now in (100.0, 101.0, 106.0, 112.0):
        view.show(course(), now)
    assert capsys.readouterr().err == "1 of 7 pods are gone, 1 terminate, 1 wait, 1 failed\n"


def test_the_last_line_is_not_said_twice(view, capsys):
    view.show(course(), 100.0)
    view.close()
    assert capsys.readouterr().err.count("pods are gone") == 1
    view.show(course(), 200.0)
    view.warn("something else")
    view.close()
    assert capsys.readouterr().err.endswith("1 of 7 pods are gone, 1 terminate, 1 wait, 1 failed\n"), "how it ended"


def test_the_words_of_kubectl(view, capsys):
    target = pod("db").target
    view.tell_cordoned("n1", already=False)
    view.tell_cordoned("n1", already=True)
    view.tell_asked(target, evicts=True)
    view.tell_asked(target, evicts=False)
    view.tell_gone(target, evicts=False)
    view.tell_uncordoned("n1")
    view.tell_finished("n1", NodeOutcome.DRAINED, "")
    assert capsys.readouterr().out.splitlines() == [
        "node/n1 cordoned",
        "node/n1 already cordoned",
        "evicting pod shop/db",
        "deleting pod shop/db",
        "pod/db deleted",
        "node/n1 uncordoned",
        "node/n1 drained",
    ]
    view.tell_refused(target, "not now", 5.0)
    view.tell_failed(target, SEVERAL)
    view.tell_finished("n1", NodeOutcome.FAILED, "why")
    assert capsys.readouterr().err.splitlines() == [
        'error when evicting pods/"db" -n "shop" (will retry after 5s): not now',
        f'error when evicting pods/"db" -n "shop": {SEVERAL} (PodDisruptionBudget shop/db: covers it too; mend: leave one)',
        'error: unable to drain node "n1" due to error: why, continuing command...',
    ]


def test_foreign_text_cannot_command_the_terminal(view, capsys):
    view.tell_refused(pod("db").target, "\x1b[2Jgone", 5.0)
    assert "\x1b" not in capsys.readouterr().err
