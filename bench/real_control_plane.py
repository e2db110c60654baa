"""The private control plane of the tests, for the benches."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.kube.real_control_plane import RealControlPlane, free_port, program_path, versions, why_not

__all__ = ["RealControlPlane", "free_port", "program_path", "versions", "why_not"]
