"""The socket for scripts: whom it serves, and what reaches it that is no request."""

import asyncio
import os
import socket
import stat
import subprocess
import sys

import pytest

from lastcall.adapters.deadlines import notice_socket
from lastcall.adapters.deadlines.notice_socket import MOST_BYTES, send_request, serve_notices
from lastcall.errors import LastcallError, Unavailable


async def ask(path, line):
    return await asyncio.to_thread(send_request, path, line, seconds=60)


def echo(line):
    return b"[" + line.strip() + b"]"


async def test_one_line_is_answered_by_one(tmp_path):
    path = tmp_path / "notice.sock"
    async with serve_notices(path, echo):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert await ask(path, b'{"seconds": 5}') == b'[{"seconds": 5}]\n'
        assert await ask(path, b"") == b"[]\n"
    assert not path.exists()


async def test_a_request_may_end_without_a_newline(tmp_path):
    path = tmp_path / "notice.sock"
    async with serve_notices(path, echo):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"{}")
        writer.write_eof()
        assert await reader.read() == b"[{}]\n"
        writer.close()


async def test_what_is_no_request_holds_nothing_up(tmp_path, monkeypatch):
    monkeypatch.setattr(notice_socket, "_SECONDS", 0.3)
    path = tmp_path / "notice.sock"
    async with serve_notices(path, echo):
        silent, kept = await asyncio.open_unix_connection(path)
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"x" * (2 * MOST_BYTES))
        assert await asyncio.wait_for(silent.read(), 60) == b"", "who says nothing is not waited for"
        try:
            assert await asyncio.wait_for(reader.read(), 60) == b""
        except ConnectionResetError:
            pass
        kept.close()
        writer.close()
        monkeypatch.setattr(notice_socket, "_SECONDS", 60)
        assert await ask(path, b"1") == b"[1]\n"


async def test_a_socket_that_an_earlier_life_left_is_replaced(tmp_path):
    path = tmp_path / "notice.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    async with serve_notices(path, echo):
        assert await ask(path, b"1") == b"[1]\n"


async def test_a_file_of_that_name_is_not_removed(tmp_path):
    path = tmp_path / "notice.sock"
    path.write_text("mine")
    with pytest.raises(LastcallError, match="notice.sock: "):
        async with serve_notices(path, echo):
            pass
    assert path.read_text() == "mine"


CLIENT = """\
import os, socket, sys
connection = socket.socket(socket.AF_UNIX)
os.setgid(65534); os.setuid(65534)
connection.connect(sys.argv[1])
connection.sendall(b'{"seconds": 1}\\n')
print(connection.makefile().readline())
"""


@pytest.mark.root
async def test_another_user_is_refused_even_if_the_file_s_mode_lets_it_in(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    heard = []
    path = tmp_path / "notice.sock"
    async with serve_notices(path, lambda line: heard.append(line) or b"{}"):
        path.chmod(0o666)
        for directory in (tmp_path, *tmp_path.parents):
            if (
                directory != directory.parent
                and directory.stat().st_uid == os.getuid()
                and str(directory).startswith("/tmp/")
            ):
                directory.chmod(directory.stat().st_mode | 0o011)
        said = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-I", "-c", CLIENT, str(path)], capture_output=True, text=True
        )
    assert "only root may announce a shutdown" in said.stdout, said.stderr
    assert heard == []


def test_without_an_agent_it_is_said_what_is_missing(tmp_path):
    with pytest.raises(Unavailable, match="No such file or directory: is the agent running, with deadlines.socket"):
        send_request(tmp_path / "notice.sock", b"{}")
