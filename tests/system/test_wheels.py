"""lastcall from its wheel, in an environment that has nothing else: what ``pip install 'lastcall[lab]'`` gives."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("wheels")]

ROOT = Path(__file__).parents[2]
LADDER = ROOT / "docs/examples/ladder"


def run(*command, cwd, within=300):
    """What came of it; nothing of the checkout is on the module path."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env=environment | {"TMPDIR": str(cwd)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=within,
    )


class Installed:
    """An environment of its own with the wheel, and maybe an extra of it."""

    def __init__(self, directory, wheel, extra=""):
        self.directory = directory
        directory.mkdir()
        self.check(sys.executable, "-m", "venv", directory / "venv")
        pip = (directory / "venv/bin/python", "-m", "pip", "install", "--quiet")
        self.check(*pip, "--find-links", wheel.parent, f"{wheel}{extra}")

    def check(self, *command, within=600):
        """Its output, if it went well."""
        done = run(*command, cwd=self.directory, within=within)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def lastcall(self, *arguments):
        return run(self.directory / "venv/bin/lastcall", *arguments, cwd=self.directory)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built of a copy, so that nothing is left in the checkout."""
    directory = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip")
    if run(*pip, "--version", cwd=directory).returncode:
        pytest.skip("this environment has no pip")
    download = run(
        *pip, "download", "--no-deps", "--dest", directory / "probe", "setuptools>=77", "hatchling", cwd=directory
    )
    if download.returncode:
        pytest.skip(f"no package index can be reached: {download.stderr.strip().splitlines()[-1]}")
    source = directory / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for project in (source, source / "src/lastcall_lab"):
        built = run(*pip, "wheel", "--no-deps", "--wheel-dir", directory / "built", project, cwd=directory)
        assert built.returncode == 0, built.stderr
    [found] = (directory / "built").glob("lastcall-*.whl")
    return found


@pytest.fixture(scope="module")
def lab(wheel, tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("lab") / "here", wheel, "[lab]")


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("bare") / "here", wheel)


def test_the_demo_comes_to_its_end(lab):
    done = lab.lastcall("demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "moments at which two nodes could write one volume: 0\n" in done.stdout
    assert re.search(r"without a guard: \d+ of \d+ acknowledged orders are lost\n", done.stdout)
    assert re.search(r"with the guard: none of \d+ acknowledged orders are lost\n", done.stdout)
    page = Path(re.findall(r"open it in a browser:\n  file://(\S+)", done.stdout)[0])
    assert "<svg" in page.read_text()


def test_the_lab_comes_up_with_failover(lab):
    kubeconfig = lab.directory / "kubeconfig"
    command = [
        lab.directory / "venv/bin/lastcall",
        "lab",
        "up",
        "--nodes=2",
        "--failover",
        f"--kubeconfig={kubeconfig}",
    ]
    with (
        (lab.directory / "log").open("w") as log,
        subprocess.Popen(command, cwd=lab.directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process,
    ):
        try:
            said = lab.directory / "log"
            while "The lab is up" not in said.read_text():
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(0.2)
            done = lab.lastcall("lab", "status", f"--kubeconfig={kubeconfig}")
            assert done.returncode == 0, done.stderr
            assert re.search(r"lab-2\s.*on", done.stdout), done.stdout
        finally:
            process.terminate()
            process.wait(60)
    assert process.returncode == 0, said.read_text()


def test_a_simulation_and_a_plan(lab):
    done = lab.lastcall("simulate", "power-cut-fenced")
    assert done.returncode == 0, done.stderr
    done = lab.lastcall("plan", "--config", LADDER / "agent.yaml", "--pods", LADDER / "pods.yaml")
    assert done.returncode == 0, done.stderr


def test_without_any_extra_what_needs_none_works(bare):
    for arguments in (
        ("--version",),
        ("plan", "--config", LADDER / "agent.yaml", "--pods", LADDER / "pods.yaml"),
        ("manifests", "controller"),
        ("report", "--list", "--state-dir", bare.directory),
        *((verb, "--help") for verb in ("agent", "controller", "doctor", "failover")),
    ):
        done = bare.lastcall(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), arguments


def test_a_node_installs_at_most_25_mb_and_nothing_that_draws(bare):
    """Without pip, which the virtual environment brings, and with the bytecode that pip compiles."""
    [packages] = (bare.directory / "venv/lib").glob("python3*/site-packages")
    installed = {path.name.partition("-")[0]: path for path in packages.iterdir()}
    assert not installed.keys() & {"rich", "pygments", "lastcall_lab", "sushy", "boto3", "uvicorn", "cryptography"}
    own = [path for name, path in installed.items() if name not in ("pip", "setuptools", "pkg_resources")]
    files = [file for path in own for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
    assert 5e6 < sum(file.stat().st_size for file in files) <= 25e6


@pytest.mark.parametrize("arguments", [("demo",), ("lab", "up"), ("simulate", "power-cut-fenced")])
def test_without_the_extra_lab_one_sentence_names_it(bare, arguments):
    done = bare.lastcall(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{arguments[0]} is part of the lab: install it by pip install 'lastcall[lab]'\n" in done.stderr
