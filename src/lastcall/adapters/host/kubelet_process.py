"""The kubelet process of a host and its flags; ``root`` is the directory that contains proc."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class KubeletProcess:
    """A running kubelet; ``directory`` is its own below proc, ``arguments`` begin with the program."""

    directory: Path
    arguments: tuple[str, ...]


def find_kubelet_process(root: Path = Path("/")) -> KubeletProcess | None:
    """The kubelet with the lowest pid; None if none runs. Raises OSError if its files cannot be read."""
    for directory in sorted((root / "proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            if (directory / "comm").read_text().strip() == "kubelet":
                arguments = (directory / "cmdline").read_text(errors="replace").split("\0")[:-1]
                return KubeletProcess(directory, tuple(arguments))
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has just ended
    return None


def flag_value(arguments: Sequence[str], name: str) -> str:
    """The last value of ``--name=value`` or ``--name value``; "" if absent."""
    value = ""
    for index, argument in enumerate(arguments):
        if argument == f"--{name}":
            value = "".join(arguments[index + 1 : index + 2])
        elif argument.startswith(f"--{name}="):
            value = argument.partition("=")[2]
    return value


def path_below(root: Path, path: str) -> Path:
    """An absolute path of the host as this process sees it."""
    return root / path.lstrip("/")
