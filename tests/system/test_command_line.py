"""``lastcall`` where its output goes to a full disk, nobody reads on, or not all of it is installed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(120)

CLI = Path(__file__).parents[2] / "docs/reference/cli.md"
LASTCALL = [sys.executable, "-m", "lastcall"]


@pytest.mark.parametrize("arguments", [["manifests", "controller"], ["simulate", "--list"], ["--help"]])
def test_a_full_disk_is_told_in_a_sentence(arguments):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*LASTCALL, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=90
        )
    assert (done.returncode, done.stderr) == (1, "lastcall: No space left on device\n")


def test_who_reads_no_further_ends_it_quietly():
    line = f"{sys.executable} -m lastcall manifests controller | head -n 1"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, timeout=90)
    assert (done.stdout, done.stderr) == ("---\n", "")


def test_a_directory_is_no_configuration(tmp_path):
    done = subprocess.run(
        [*LASTCALL, "doctor", "--config", str(tmp_path)], capture_output=True, text=True, check=False, timeout=90
    )
    assert (done.returncode, done.stderr) == (2, f"lastcall: --config: {tmp_path}: Is a directory\n")


@pytest.mark.parametrize(
    ("module", "verb"),
    [
        ("cryptography", ["lab", "up", "--nodes=0"]),
        ("cryptography", ["demo"]),
        ("sushy", ["demo"]),
        ("sushy", ["lab", "up", "--nodes=0", "--failover"]),
        ("cel", ["simulate", "power-cut-fenced"]),
    ],
)
def test_without_the_extra_it_is_named(module, verb, tmp_path):
    program = f"import sys; sys.modules[{module!r}] = None; from lastcall.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *verb],
        env=os.environ | {"XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"lastcall: the Python package {module} is missing: install lastcall with its extra lab, "
        "by pip install 'lastcall[lab]', or '.[lab]' in a checkout\n"
    )


def test_the_guard_names_its_extra():
    """What makes its certificates is loaded by another process."""
    program = "import sys; sys.modules['cryptography'] = None; from lastcall.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "guard", "run"], capture_output=True, text=True, check=False, timeout=90
    )
    said = "lastcall: certificates need the extra guard: pip install 'lastcall[guard]'\n"
    assert (done.returncode, done.stderr) == (1, said)


DOCUMENTED = re.findall(r"^\| (bash|zsh|fish)[^|]* \| `(.+?)` \| ", CLI.read_text(), re.MULTILINE)
"""Shell and line, as the page on the command line has them."""


def in_a_shell(shell, script, directory):
    """What a shell of that kind prints that has ``lastcall`` on its PATH, and reads no files of its own."""
    (directory / "lastcall").write_text(f'#!/bin/sh\nexec {sys.executable} -m lastcall "$@"\n')
    (directory / "lastcall").chmod(0o755)
    environment = {"PATH": f"{directory}:{os.environ['PATH']}", "HOME": str(directory)}
    done = subprocess.run(
        [shell, "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=90
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_completion_is_documented_for_three_shells():
    assert [shell for shell, _ in DOCUMENTED] == ["bash", "zsh", "fish"]
    assert all(f"_LASTCALL_COMPLETE={shell}_source" in line for shell, line in DOCUMENTED)


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        (["de"], ["demo"]),
        (["lab", "st"], ["status"]),
        (["report", "--st"], ["--state-dir"]),
        (["simulate", "-o", "h"], ["html"]),
        (["nothing-like-this"], []),
    ],
)
def test_bash_completes(typed, completed, tmp_path):
    line = dict(DOCUMENTED)["bash"]
    words = " ".join(["lastcall", *typed])
    script = f'{line}; COMP_WORDS=({words}); COMP_CWORD={len(typed)}; _lastcall_completion lastcall; echo "${{COMPREPLY[@]}}"'
    assert in_a_shell("bash", script, tmp_path).split() == completed


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_are_answered(shell, tmp_path):
    """They need not be installed: what the line prints is theirs, and so is what lastcall answers to it."""
    script = in_a_shell("sh", f"_LASTCALL_COMPLETE={shell}_source lastcall", tmp_path)
    assert f"_LASTCALL_COMPLETE={shell}_complete" in script
    typed = {"zsh": ("lastcall de", 1), "fish": ("lastcall de", "de")}[shell]
    asked = f'COMP_WORDS="{typed[0]}" COMP_CWORD={typed[1]} _LASTCALL_COMPLETE={shell}_complete lastcall'
    assert "demo" in in_a_shell("sh", asked, tmp_path)
