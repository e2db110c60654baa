"""Names of the core: a reader who searches for a class finds one."""

import ast
from collections import defaultdict
from pathlib import Path

CORE = Path(__file__).parents[2] / "src/lastcall"
GENERATED = CORE / "adapters/cri/api"


def test_no_two_public_classes_share_a_name():
    files = defaultdict(list)
    for path in sorted(CORE.rglob("*.py")):
        if GENERATED in path.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files[node.name].append(str(path.relative_to(CORE)))
    assert {name: paths for name, paths in files.items() if len(paths) > 1} == {}
