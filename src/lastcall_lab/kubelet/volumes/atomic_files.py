"""Directories whose files change atomically, in the kubelet's layout (``pkg/volume/util/atomic_writer.go``).

The files are in a directory of their own, to which the link ``..data`` points. The names that programs see are links
through ``..data``. A change writes a new directory and then replaces that link, so a reader sees either all old files
or all new ones.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

DATA = "..data"
_NEXT = "..data_tmp"

Files = Mapping[str, tuple[bytes, int]]
"""Content and mode by relative path; no path begins with two dots."""


def write_directory(directory: Path, files: Files) -> None:
    """Makes ``directory`` hold exactly these files; changes nothing if it already does."""
    directory.mkdir(parents=True, exist_ok=True)
    data = directory / DATA
    if data.is_symlink() and _read_files(directory / data.readlink()) == files:
        return
    new = Path(tempfile.mkdtemp(prefix="..", dir=directory))
    new.chmod(0o755)
    _fill_directory(new, files)
    link = directory / _NEXT
    link.unlink(missing_ok=True)
    link.symlink_to(new.name)
    link.replace(data)
    _show_links(directory, {Path(path).parts[0] for path in files})
    for old in [one for one in directory.iterdir() if one.name.startswith("..") and one not in (data, new)]:
        shutil.rmtree(old)


def _fill_directory(directory: Path, files: Files) -> None:
    for relative, (content, mode) in files.items():
        file = directory / relative
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(mode)


def _show_links(directory: Path, names: set[str]) -> None:
    """Maintains the links that programs see: one for each top-level name."""
    present = {one.name for one in directory.iterdir() if not one.name.startswith("..")}
    for name in sorted(present - names):
        (directory / name).unlink()
    for name in sorted(names - present):
        (directory / name).symlink_to(Path(DATA) / name)


def _read_files(directory: Path) -> dict[str, tuple[bytes, int]]:
    found = {}
    for place, _, names in os.walk(directory):
        for file in (Path(place, name) for name in names):
            found[str(file.relative_to(directory))] = (file.read_bytes(), file.stat().st_mode & 0o7777)
    return found
