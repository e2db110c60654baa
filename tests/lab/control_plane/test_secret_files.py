"""The files of the lab's control plane: what cannot be one is refused in one sentence that says what to do."""

import os
import stat

import pytest
from cryptography import x509

from lastcall.errors import InvalidInput
from lastcall_lab.apiserver.authentication import certificates
from lastcall_lab.apiserver.storage import private_files
from lastcall_lab.control_plane import secret_files

NOW = 1_800_000_000.0


def refused(read, *arguments, **more):
    with pytest.raises(InvalidInput) as error:
        read(*arguments, **more)
    return str(error.value)


@pytest.mark.parametrize("content", [b"", b"\n", b" \t\n"])
def test_an_empty_token_is_refused(tmp_path, content):
    path = tmp_path / "admin.token"
    path.write_bytes(content)
    assert refused(secret_files.read_secret, path) == f"{path}: is empty: remove the file, and a new one is made"


@pytest.mark.parametrize("content", [b"short", b"a" * 20 + b" b", b"\xff" * 20, "ä".encode() * 20, b"a" * 20 + b"\n"])
def test_a_token_that_is_none(tmp_path, content):
    path = tmp_path / "admin.token"
    path.write_bytes(content)
    assert f"{path}: is not 16 or more letters, digits" in refused(secret_files.read_secret, path)


def test_a_token_is_made_once(tmp_path):
    path = tmp_path / "admin.token"
    made = secret_files.read_secret(path)
    assert secret_files.read_secret(path) == made
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"x" * 15])
def test_a_key_that_is_too_short(tmp_path, content):
    path = tmp_path / "service-account.key"
    path.write_bytes(content)
    assert "remove the file, and a new one is made" in refused(secret_files.read_signing_key, path)


@pytest.mark.parametrize("content", [b"", b"none", b"0", b"65536", b"-1", b"\xff\xfe", b"1e3", "\u0663".encode()])
def test_a_port_that_is_none(tmp_path, content):
    path = tmp_path / "port"
    path.write_bytes(content)
    assert refused(secret_files.read_port, path) == (
        f"{path}: is not a port number from 1 to 65535: remove the file, and a new one is made"
    )


def test_the_port_of_last_time(tmp_path):
    assert secret_files.read_port(tmp_path / "port") == 0
    (tmp_path / "port").write_text("6443\n")
    assert secret_files.read_port(tmp_path / "port") == 6443


def authority(directory):
    return secret_files.read_authority(directory / "ca.pem", directory / "ca.key", now=NOW)


@pytest.mark.parametrize("name", ["ca.pem", "ca.key"])
@pytest.mark.parametrize("content", [b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"])
def test_an_authority_that_cannot_be_read(tmp_path, name, content):
    authority(tmp_path)
    (tmp_path / name).write_bytes(content)
    said = refused(authority, tmp_path)
    assert said.startswith(f"{tmp_path / name}: is not a ")
    assert said.endswith("remove ca.pem and ca.key, and new ones are made")


def test_the_key_of_another_authority(tmp_path):
    authority(tmp_path)
    (tmp_path / "ca.key").write_bytes(certificates.new_authority("other", now=NOW).key)
    assert refused(authority, tmp_path).startswith(f"{tmp_path / 'ca.key'}: is not the key of ca.pem")


def test_an_authority_is_made_once(tmp_path):
    assert authority(tmp_path) == authority(tmp_path)


@pytest.mark.parametrize(("days", "kept"), [(0, True), (270, True), (280, False), (400, False)])
def test_an_authority_that_ends_soon_is_made_anew(tmp_path, days, kept):
    """It is valid for a year, and a lab's data may be kept for longer."""
    made = authority(tmp_path)
    later = NOW + days * 86400
    found = secret_files.read_authority(tmp_path / "ca.pem", tmp_path / "ca.key", now=later)
    assert (found == made) is kept
    assert secret_files.read_authority(tmp_path / "ca.pem", tmp_path / "ca.key", now=later) == found
    assert x509.load_pem_x509_certificate(found.certificate).not_valid_after_utc.timestamp() > later + 80 * 86400


def test_what_cannot_be_read(tmp_path):
    (tmp_path / "port").mkdir()
    assert refused(secret_files.read_port, tmp_path / "port") == f"{tmp_path / 'port'}: cannot be read: Is a directory"


@pytest.mark.parametrize("umask", [0o000, 0o777], ids=oct)
def test_the_umask_makes_no_difference(tmp_path, umask):
    before = os.umask(umask)
    try:
        private_files.make_directory(tmp_path / "d")
        private_files.write_file(tmp_path / "d" / "f", b"x")
        private_files.create_file(tmp_path / "d" / "g")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("d", "d/f", "d/g")]
    assert modes == [0o700, 0o600, 0o600]


def test_the_file_behind_a_link_is_left_alone(tmp_path):
    (tmp_path / "theirs").touch(mode=0o644)
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    private_files.restrict_access(tmp_path / "link")
    assert stat.S_IMODE((tmp_path / "theirs").stat().st_mode) == 0o644


def test_who_is_interrupted_while_an_authority_is_replaced_gets_one_at_the_next_start(tmp_path, monkeypatch):
    authority(tmp_path)
    write = private_files.write_file

    def interrupted(path, content):
        if path.name == "ca.pem":
            raise KeyboardInterrupt
        write(path, content)

    monkeypatch.setattr(private_files, "write_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        secret_files.read_authority(tmp_path / "ca.pem", tmp_path / "ca.key", now=NOW + 360 * 86400)
    monkeypatch.undo()
    assert authority(tmp_path) == authority(tmp_path)
