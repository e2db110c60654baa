"""What the command line says to words that it does not know."""

import pytest
from click.testing import CliRunner

from lastcall.cli.main import cli


def said(*words):
    result = CliRunner().invoke(cli, words)
    return result.exit_code, result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["dmo"], "No such command 'dmo'. Did you mean 'demo'?"),
        (["contrller", "--help"], "No such command 'contrller'. Did you mean 'controller'?"),
        (["zzz"], "No such command 'zzz'."),
        (["lab", "statu"], "No such command 'statu'. Did you mean 'status'?"),
        (["failover", "plam"], "No such command 'plam'. Did you mean 'plan'?"),
        (["manifests", "contoller"], "No such command 'contoller'. Did you mean 'controller'?"),
        (["plan", "--grnted", "x"], "No such option '--grnted'. Did you mean '--granted'?"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_one_that_was_meant(words, answer):
    assert said(*words) == (2, f"Error: {answer}")


def test_a_mistyped_scenario_too():
    result = CliRunner().invoke(cli, ["simulate", "power-cutt"])
    assert str(result.exception).endswith('; did you mean "power-cut"?')
    result = CliRunner().invoke(cli, ["simulate", "no-such-thing-at-all"])
    assert "did you mean" not in str(result.exception)


def test_a_list_of_all_shutdowns_takes_no_id(tmp_path):
    assert said("report", "--state-dir", str(tmp_path), "--list", "20261121-180101-526") == (
        2,
        "Error: --list names all shutdowns and takes no ID, but '20261121-180101-526' is given",
    )
