"""Shows a process its volumes at their mountPaths, in a mount namespace with a root made from the machine's.

``enter.py`` loads it with ``python -I -S``, so it imports nothing of lastcall.

The new root is a tmpfs in which each entry of the old one is bind-mounted. A directory on the way to a mountPath is
made in the same way. The mountPath itself is a symbolic link to the volume, not a bind mount: so a volume that is cut
off from this node is also cut off from the process. The machine's own tree does not change. Without root it uses a user
namespace, in which the user stays the same.
"""

# pathlib and typing would take longer to import than all the rest:
# ruff: noqa: PTH100, PTH102, PTH112, PTH114, PTH115, PTH118, PTH119, PTH120, PTH123, PTH208, PTH211

import ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_NEWNS, _NEWUSER = 0x00020000, 0x10000000
_BIND, _MOVE, _REC, _SLAVE = 4096, 8192, 16384, 1 << 19
_MOST = 2000
"""Largest directory whose entries are mounted one by one; more would take too long."""


def enclose(root: str, links: "Sequence[tuple[str, str]]") -> None:
    """Makes ``source`` visible at ``target`` for each of the ``links``, to this process and its children.

    ``root`` is an empty directory. Raises OSError, without an effect, if the machine does not allow it, or if one
    volume would hide another.
    """
    tree: dict[str, Any] = {}
    for target, source in links:
        _plant(tree, os.path.normpath(target), source)
    for target, _ in links:
        _check_visible(os.path.realpath(target), [source for _, source in links])
    _unshare()
    _mount(None, "/", None, _REC | _SLAVE)  # unmounts on the machine propagate here
    _mount("tmpfs", root, "tmpfs", 0, "mode=0755,size=1m")
    _build(root, "/", tree)
    os.chdir(root)
    _mount(root, "/", None, _MOVE)
    os.chroot(".")
    os.chdir("/")


def _plant(tree: "dict[str, Any]", target: str, source: str) -> None:
    """Puts the link into the tree: directories by their real names, and the volume's path as the last one."""
    parent = os.path.realpath(os.path.dirname(target))
    node: Any = tree
    for name in parent.strip("/").split("/") if parent != "/" else ():
        node = node.setdefault(name, {})
        if isinstance(node, str):
            raise OSError(f"{target} lies in another volume")
    name = os.path.basename(target)
    if not name or name in node:
        raise OSError(f"{target} holds another volume")
    node[name] = source


def _check_visible(target: str, sources: "Sequence[str]") -> None:
    for source in sources:
        if f"{os.path.realpath(source)}/".startswith(f"{target}/") or f"{os.path.abspath(source)}/".startswith(
            f"{target}/"
        ):
            raise OSError(f"{target} would hide {source}")


def _unshare() -> None:
    uid, gid = os.geteuid(), os.getegid()
    _call("unshare", _NEWNS | (_NEWUSER if uid else 0))
    if uid:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)


def _build(made: str, old: str, tree: "dict[str, Any]") -> None:
    """Fills a directory with the machine's entries and with the tree."""
    for name in _entries(old):
        if name not in tree:
            _show(os.path.join(old, name), os.path.join(made, name))
    for name, below in tree.items():
        path = os.path.join(made, name)
        if isinstance(below, str):
            os.symlink(below, path)
        else:
            os.mkdir(path, 0o755)
            _build(path, os.path.join(old, name), below)


def _entries(directory: str) -> "Sequence[str]":
    try:
        names = os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    if len(names) > _MOST:
        raise OSError(f"{directory} has more than {_MOST} entries")
    return names


def _show(old: str, new: str) -> None:
    if os.path.islink(old):
        os.symlink(os.readlink(old), new)
        return
    if os.path.isdir(old):
        os.mkdir(new, 0o755)
    else:
        os.close(os.open(new, os.O_CREAT | os.O_WRONLY, 0o600))
    try:
        _mount(old, new, None, _BIND | _REC)
    except FileNotFoundError:
        pass  # deleted meanwhile


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    where, what, type_, more = (None if one is None else os.fsencode(one) for one in (target, source, kind, data))
    _call("mount", what, where, type_, ctypes.c_ulong(flags), more)


def _call(name: str, *arguments: "Any") -> None:
    if getattr(_LIBC, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


_LIBC = ctypes.CDLL(None, use_errno=True)
