"""Text of others: it steers no terminal, begins no line of a log, and is quoted where it stands in a command."""

import io
import json
import logging
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from support.agents import shutdown_records
from support.failover.explain_command import CLUSTER, document, machine, policy, run
from support.failover.snapshots import attachment, lease, out, pod, state

from lastcall.adapters.telemetry import logs
from lastcall.cli import doctor, failover_acknowledge
from lastcall.cli.main import cli, main
from lastcall.doctor.all_checks import build_report
from lastcall.doctor.finding import Check, CheckVerdict
from lastcall.errors import InvalidInput
from lastcall.model.decoding import quote_value
from lastcall.model.foreign_text import plain_lines, plain_text
from lastcall.model.shutdown_fold import fold_events
from lastcall.report.text_report import render_text
from lastcall.report.timeline import build_timeline
from lastcall_lab.cli import simulate

EVIL = "web\x1b[2J\x9b31m\r\u2028\u202e\x00\nERROR   all is well \ud800[bold red]"
"""Clears the screen, colours, begins lines, turns the direction of writing, ends a C string, is no text."""


@given(st.text())
def test_whatever_it_is_it_is_one_printable_line(said):
    assert plain_text(said).isprintable()
    assert len(plain_text(said)) == len(said)


@given(st.text())
def test_of_several_lines_only_the_first_begins_at_the_margin(said):
    first, *others = plain_lines(said, "    ").split("\n")
    assert first.isprintable()
    assert all(line.startswith("    ") and line.isprintable() for line in others)


def logged(*arguments, **options):
    stream = io.StringIO()
    logger, root = logging.getLogger("lastcall.test"), logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        logs.configure_logging(as_json=options.pop("as_json", False), verbose=False)
        root.handlers[0].setStream(stream)
        logger.warning(*arguments, **options)
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    return stream.getvalue()


def test_a_log_has_one_line_for_what_others_say():
    said = logged("%s: preStop hook failed: %s", "shop/web", EVIL)
    assert said.count("\n") == 1
    assert said.rstrip("\n").isprintable()
    assert said.rstrip().endswith("[bold red]")


def test_an_error_of_several_lines_keeps_them_and_none_looks_like_an_entry():
    error = InvalidInput("a.yaml", ["one: wrong", f"two: {EVIL}"])
    first, *others = logged("not valid:\n%s", error).rstrip("\n").split("\n")
    assert len(others) == 3
    assert all(line.startswith("    ") and line.isprintable() for line in (*others, "    " + first))


def test_a_traceback_is_harmless_too():
    try:
        raise ValueError(EVIL)
    except ValueError:
        _, *others = logged("broke off", exc_info=True).rstrip("\n").split("\n")
    assert all(line.startswith("    ") and line.isprintable() for line in others)


def test_json_says_what_was_said():
    said = logged("%s", "a\x1b\nb", as_json=True)
    assert (json.loads(said)["message"], said.count("\n")) == ("a\x1b\nb", 1)
    assert json.loads(logged("%s", EVIL, as_json=True))["message"].endswith("[bold red]")


def test_a_quoted_value_is_harmless():
    assert quote_value("\x9b31m\u202e").isprintable()


def test_the_report_of_hostile_names():
    assert all(
        line.isprintable() for line in render_text(build_timeline(fold_events(shutdown_records.hostile()))).split("\n")
    )


def check_harmless(output):
    lines = output.split("\n")
    assert any("all is well" in line for line in lines), output
    assert all(line.isprintable() for line in lines)
    assert not any(line.lstrip().startswith("ERROR") for line in lines)


def test_what_the_doctor_has_found(capsys):
    doctor.print_report(build_report([Check(name="node", verdict=CheckVerdict.WARNING, message=EVIL, fix=EVIL)]))
    said = capsys.readouterr().out
    assert said.count("all is well") == 2
    check_harmless(said)


def test_an_error_that_ends_a_command(monkeypatch, capsys):
    """It may have several lines."""
    there_is_none = "/\x1b[2J\x9b31m\u202e"
    monkeypatch.setattr("sys.argv", ["lastcall", "plan", "--config", there_is_none, "--pods", there_is_none])
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr().err
    assert "[2J" in said
    assert said.rstrip("\n").isprintable()


def test_what_is_not_simulated_as_it_is(capsys):
    own = SimpleNamespace(source_option="--state", read_state=lambda: SimpleNamespace(warnings=[EVIL]))
    simulate._read_own_cluster(own)
    check_harmless(capsys.readouterr().err)


def test_what_is_acknowledged(monkeypatch):
    async def run(*_):
        pass

    monkeypatch.setattr(failover_acknowledge, "_acknowledge_in_cluster", run)
    done = CliRunner().invoke(cli, ["failover", "acknowledge", EVIL, "--boot-id", EVIL])
    check_harmless(done.output)


def test_a_failover_plan_of_hostile_objects(tmp_path):
    evil = EVIL.replace("\ud800", "")
    alive = f"{evil}-alive"
    objects = [
        *(out(evil), lease(evil, 90), out(alive), lease(alive, 5)),
        *(pod(evil, evil, terminating=True), pod(f"{evil}2", alive, terminating=True)),
    ]
    path = tmp_path / "state.json"
    path.write_bytes(state(*objects, attachment(f"va-{evil}", evil, evil), {"apiVersion": "v1", "kind": evil}))
    done = CliRunner().invoke(cli, ["failover", "plan", "--state", str(path), "--now", "2026-11-21T12:00:00Z"])
    assert done.exit_code == 0, done.output
    assert "warning: " in done.output
    assert "note: nothing is forced from node " in done.output
    check_harmless(done.output)


def test_a_plan_of_hostile_pods(tmp_path):
    config = tmp_path / "agent.yaml"
    config.write_text("apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\nshutdownGracePeriod: 30s\n")
    pods = tmp_path / "pods.json"
    evil = EVIL.replace("\ud800", "")
    hook = {"preStop": {"exec": {"command": ["x"]}}}
    spec = {
        "containers": [{"name": evil, "lifecycle": hook}],
        "terminationGracePeriodSeconds": 60,
        "priorityClassName": evil,
    }
    items = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": evil, "namespace": node},
            "spec": {**spec, "nodeName": node},
        }
        for node in ("shop", evil)
    ]
    pods.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    done = CliRunner().invoke(cli, ["plan", "--config", str(config), "--pods", str(pods)])
    assert done.exit_code == 0, done.output
    assert [words for words in ("warning: the", "preStop of", "priority class") if words not in done.output] == []
    check_harmless(done.output)
    done = CliRunner().invoke(cli, ["plan", "--config", str(config), "--pods", str(pods), "-o", "json"])
    assert json.loads(done.output)["phases"][0]["pods"][0]["name"] == evil


def around(boot, **annotations):
    """The cluster with another n1."""
    return [machine("n1", boot=boot, annotations=annotations), *CLUSTER[1:], policy()]


def test_what_a_node_says_of_itself_is_quoted_in_the_command_that_is_offered():
    silent = [machine("n1", boot="b; reboot #"), lease("n1", 90), *CLUSTER[2:], policy(fencers=[])]
    said = str(document("n1", *silent))
    assert "--boot-id b;" not in said
    assert "lastcall failover acknowledge n1 --boot-id 'b; reboot #'" in said


def test_an_explanation_of_a_hostile_node():
    boot = EVIL.replace("\ud800", "")
    objects = around(boot, **{"lastcall.dev/failover": boot})
    lines = run("n1", *objects).stdout.split("\n")
    assert any("all is well" in line for line in lines)
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("ERROR") for line in lines)
    assert any(boot in one for one in document("n1", *objects)["known"]), "JSON is exact"
