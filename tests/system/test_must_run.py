"""``tools/must_run.py``, which continuous integration asks whether a test was skipped that must run."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "must_run.py"
TESTS = """\
import pytest

def test_plain():
    pass

@pytest.mark.skip(reason="not here")
def test_skipped():
    pass

@pytest.mark.parametrize("world", ["fake", pytest.param("re@l", marks=pytest.mark.skip)])
@pytest.mark.xdist_group("worlds")
def test_worlds(world):
    pass

@pytest.mark.xfail(strict=True)
def test_difference():
    raise AssertionError

class TestClass:
    def test_in_it(self):
        pytest.skip("not now")
"""
SKIPPED = [
    "tests/test_module.py # a module without its library",
    "tests/test_some.py::TestClass::test_in_it # at night only",
    "tests/test_some.py::test_skipped # no device",
    "tests/test_some.py::test_worlds[re*] # no world",
]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Of real tests, as pytest writes them."""
    directory = tmp_path_factory.mktemp("project")
    (directory / "tests").mkdir()
    (directory / "tests/test_some.py").write_text(TESTS)
    (directory / "tests/test_module.py").write_text("import pytest\npytest.importorskip('no_such_library')\n")
    (directory / "pytest.ini").write_text("[pytest]\n")
    command = (sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "--junitxml=results.xml")
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, timeout=90)
    assert done.returncode == 0, done.stdout
    return directory / "results.xml"


def judge(results, tmp_path, lines):
    """Its exit code and what it says."""
    listed = tmp_path / "may-skip.txt"
    listed.write_text("# the reasons\n\n" + "\n".join(lines))
    done = subprocess.run(
        [sys.executable, TOOL, results, "may-skip.txt"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_what_is_skipped_is_listed_with_its_reason(results, tmp_path):
    assert judge(results, tmp_path, SKIPPED) == (0, ["3 of 7 tests have run, 4 were skipped"])


@pytest.mark.parametrize("left_out", range(4))
def test_what_is_skipped_and_not_listed_fails(results, tmp_path, left_out):
    lines = [line for number, line in enumerate(SKIPPED) if number != left_out]
    code, said = judge(results, tmp_path, lines)
    name = SKIPPED[left_out].partition(" #")[0].replace("re*", "re@l")
    assert (code, said[:-1]) == (1, [f"must run: {name}: skipped, and may-skip.txt gives no reason why it may be"])


def test_a_name_without_its_parameters_allows_nothing(results, tmp_path):
    code, said = judge(results, tmp_path, [*SKIPPED[:3], "tests/test_some.py::test_worlds # no world"])
    assert code == 1
    assert any("test_worlds[re@l]: skipped" in line for line in said)
    assert "must run: may-skip.txt: tests/test_some.py::test_worlds names no test" in said


def test_each_line_has_a_reason_and_names_a_test(results, tmp_path):
    code, said = judge(results, tmp_path, [*SKIPPED, "tests/test_some.py::test_plain", "tests/test_gone.py::* # went"])
    assert (code, said[:-1]) == (
        1,
        [
            "must run: may-skip.txt: tests/test_some.py::test_plain has no reason behind #",
            "must run: may-skip.txt: tests/test_gone.py::* names no test",
        ],
    )


@pytest.mark.parametrize("what", ["failure", "error"])
def test_what_has_failed_has_not_run(tmp_path, what):
    results = tmp_path / "results.xml"
    results.write_text(
        f'<testsuites><testcase classname="tests.test_a" name="test_b"><{what}/></testcase></testsuites>'
    )
    assert judge(results, tmp_path, [])[0] == 1


def test_no_tests_at_all_is_an_error(tmp_path):
    results = tmp_path / "results.xml"
    results.write_text("<testsuites/>")
    assert judge(results, tmp_path, []) == (
        1,
        ["must run: results.xml has no test", "0 of 0 tests have run, 0 were skipped"],
    )
