"""``tools/second_try.py``, which continuous integration asks when tests have failed beside others."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
TESTS = """\
import pathlib
import pytest

def test_alone_only():
    flag = pathlib.Path("flag")
    beside_others, _ = not flag.exists(), flag.touch()
    assert not beside_others

@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("word", ["a b"])
class TestClass:
    def test_never(self, word):
        assert not pathlib.Path("broken").exists()

def test_always():
    pass
"""


class Project:
    """Tests of which one fails at the first try; with the file ``broken`` one fails at each try."""

    def __init__(self, directory, where="tests/system"):
        self.directory = directory
        (directory / where).mkdir(parents=True)
        (directory / where / "test_some.py").write_text(TESTS)
        (directory / "pytest.ini").write_text("[pytest]\n")
        (directory / "list").write_text("")

    def test_all(self):
        done = self._run("-m", "pytest", "-n", "2", "--dist", "loadgroup", "--junitxml=results.xml")
        assert done.returncode == 1, done.stdout

    def try_again(self):
        """Exit code and output, and what ``must_run.py`` finds then."""
        done = self._run(TOOLS / "second_try.py", "results.xml", "second.xml")
        files = [name for name in ("results.xml", "second.xml") if (self.directory / name).exists()]
        return done.returncode, done.stdout, self._run(TOOLS / "must_run.py", *files, "list").returncode

    def _run(self, *words):
        return subprocess.run(
            [sys.executable, *words], cwd=self.directory, capture_output=True, text=True, check=False, timeout=90
        )


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_what_passes_alone_is_named_and_passes(project):
    project.test_all()
    code, said, judged = project.try_again()
    assert (code, judged) == (0, 0)
    assert "second try: tests/system/test_some.py::test_alone_only: failed beside others\n" in said
    assert "1 passed" in said


def test_what_fails_alone_too_fails(project):
    (project.directory / "broken").touch()
    project.test_all()
    code, said, judged = project.try_again()
    assert (code, judged) == (1, 1)
    assert "second try: tests/system/test_some.py::TestClass::test_never[a b]: failed beside others\n" in said
    assert "1 failed, 1 passed" in said


def test_what_depends_on_nothing_outside_has_one_try(tmp_path):
    project = Project(tmp_path, where="tests/core")
    project.test_all()
    code, said, judged = project.try_again()
    assert (code, judged) == (1, 1)
    assert said == "second try: none: tests/core/test_some.py::test_alone_only does not depend on the machine\n"


def test_many_failures_have_one_try(project):
    (project.directory / "tests/system/test_more.py").write_text(
        "import pytest\n@pytest.mark.parametrize('n', range(10))\ndef test_more(n):\n    assert n == 11\n"
    )
    project.test_all()
    assert project.try_again() == (1, "second try: none: 11 tests failed, more than 10\n", 1)
