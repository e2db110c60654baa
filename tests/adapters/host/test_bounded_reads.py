"""Files without an end: each is refused in words, and before memory is full."""

import io
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from lastcall.adapters.host.bounded_reads import read_file, read_stream
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.credentials import read_text
from lastcall.cli import options
from lastcall.cli.main import cli
from lastcall.errors import InvalidInput, Unavailable
from lastcall.wiring.config import load_config

ENDLESS = Path("/dev/zero")
CONFIG = "apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\nshutdownGracePeriod: 30s\n"


@pytest.fixture
def little(monkeypatch):
    """A state may have no more than two MiB."""
    monkeypatch.setattr(options.read_content, "__defaults__", (2 * 2**20,))


def test_as_much_as_is_allowed_is_read_and_no_more(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"x" * 2**20)
    assert len(read_file(file, 2**20)) == 2**20
    file.write_bytes(b"x" * (2**20 + 1))
    with pytest.raises(InvalidInput, match=r"file: must not have more than 1 MiB$"):
        read_file(file, 2**20)
    with pytest.raises(InvalidInput, match=r"^a pipe: must not have more than 1 MiB$"):
        read_stream(io.BytesIO(file.read_bytes()), 2**20, "a pipe")


@pytest.mark.parametrize("read", [load_config, lambda path: kubeconfig.load_kubeconfig([path], None)])
def test_a_configuration_without_an_end_is_refused(read):
    with pytest.raises(InvalidInput, match=r"/dev/zero: must not have more than 10 MiB"):
        read(ENDLESS)


def test_a_token_without_an_end_is_none():
    with pytest.raises(Unavailable, match="must not have more than 10 MiB"):
        read_text(ENDLESS)


@pytest.mark.parametrize(
    ("arguments", "most"),
    [
        (["plan", "--config", "CONFIG", "--pods", "/dev/zero"], 2),
        (["plan", "--config", "/dev/zero", "--pods", "CONFIG"], 10),
        (["failover", "plan", "--state", "/dev/zero"], 2),
        (["failover", "explain", "n1", "--state", "/dev/zero"], 2),
        (["simulate", "/dev/zero"], 10),
        (["simulate", "-"], 10),
        (["simulate", "--state", "/dev/zero", "graceful-reboot"], 2),
    ],
)
def test_every_file_of_the_command_line_has_a_limit(arguments, most, tmp_path, little):
    config = tmp_path / "agent.yaml"
    config.write_text(CONFIG)
    command = [str(config) if one == "CONFIG" else one for one in arguments]
    done = CliRunner().invoke(cli, command, input=b"x" * (10 * 2**20 + 1) if "-" in arguments else None)
    assert isinstance(done.exception, InvalidInput), done.output
    assert f"must not have more than {most} MiB" in str(done.exception)


def test_a_pipe_without_an_end_is_refused_too(tmp_path):
    config = tmp_path / "agent.yaml"
    config.write_text(CONFIG)
    command = [sys.executable, "-m", "lastcall", "plan", "--config", str(config), "--pods", "-"]
    with ENDLESS.open("rb") as endless:
        done = subprocess.run(command, stdin=endless, capture_output=True, text=True, check=False, preexec_fn=_bound)
    assert (done.returncode, done.stderr) == (2, "lastcall: standard input: must not have more than 256 MiB\n")


def _bound():
    resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
