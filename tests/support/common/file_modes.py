"""Who may read what a program keeps."""

import stat


def modes(directory):
    """Of the directory and all that is in it."""
    paths = [directory, *directory.rglob("*")]
    return {stat.S_IMODE(path.stat().st_mode) for path in paths}
