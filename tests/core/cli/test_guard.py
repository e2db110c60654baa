"""``lastcall guard review`` as it is called: streams and exit codes."""

import json
import subprocess
import sys

import pytest
from support.guard.reviews import deletion, policy, ready, state


def review(tmp_path, cluster, data, *more):
    (tmp_path / "state.json").write_text(json.dumps(cluster))
    command = [sys.executable, "-m", "lastcall", "guard", "review", "--state", str(tmp_path / "state.json"), *more]
    return subprocess.run(command, input=data, capture_output=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("now", "allowed"), [("2026-11-28T12:00:00Z", True), ("2026-11-28T12:01:00Z", False), (None, False)]
)
def test_the_answer_is_on_standard_output(tmp_path, now, allowed):
    done = review(tmp_path, state(policy(ready())), json.dumps(deletion()).encode(), *(("--now", now) if now else ()))
    assert (done.returncode, done.stderr) == (0, b"")
    found = json.loads(done.stdout)
    assert (found["kind"], found["response"]["uid"], found["response"]["allowed"]) == (
        "AdmissionReview",
        "review-1",
        allowed,
    )


def test_a_review_that_cannot_be_read_is_exit_code_2_and_one_sentence(tmp_path):
    done = review(tmp_path, state(), b"garbage")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"lastcall: standard input: not JSON: ")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("verb", [["review", "--state", "state.json"], ["run"]])
def test_a_configuration_that_is_wrong_names_field_value_and_rule(tmp_path, verb):
    (tmp_path / "state.json").write_text(json.dumps(state()))
    (tmp_path / "guard.yaml").write_text(
        "apiVersion: lastcall.dev/v1alpha1\nkind: GuardConfiguration\nreadySeconds: 1\nreadySecond: 20\n"
    )
    command = [sys.executable, "-m", "lastcall", "guard", *verb, "--config", "guard.yaml"]
    done = subprocess.run(command, cwd=tmp_path, input=b"", capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, b"")
    said = done.stderr.decode().splitlines()
    assert said == [
        "lastcall: guard.yaml: readySeconds: 1: must be a number >= 10.0",
        "guard.yaml: readySecond: 20: unknown field, did you mean readySeconds?",
    ]


def test_a_state_that_cannot_be_read_names_field_value_and_rule(tmp_path):
    done = review(tmp_path, state(policy(maxUnavailable=0)), json.dumps(deletion()).encode())
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"spec.maxUnavailable: 0: must be a number from 1" in done.stderr
