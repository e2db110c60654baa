"""Bugs of what the lab's API server spares a write: parts that stay as they were, claims, plugins without concern."""

from planted.bug import Bug

PARTS = ("tests/core/test_lab_patch_parts.py",)

PERSISTENCE = ("tests/adapters/test_lab_persistence.py",)

BUGS = [
    Bug(
        "what waits behind a write that has failed is written all the same",
        "lab/apiserver/database.py",
        "        self._waiting = []\n        self._lost.append",
        "        self._lost.append",
        PERSISTENCE,
    ),
    Bug(
        "what waits behind a write that has failed is dropped and stays in memory",
        "lab/apiserver/database.py",
        "self._take_back([*changes, *self._waiting], f",
        "self._take_back([*changes], f",
        PERSISTENCE,
    ),
    Bug(
        "a transaction that could not be rolled back stops all writes",
        "lab/apiserver/database.py",
        "    if connection.in_transaction:",
        "    if False:",
        PERSISTENCE,
    ),
    Bug(
        "a status patch that speaks of the spec too shares that with what is stored",
        "lab/apiserver/patching.py",
        "isinstance(patch, dict) and patch.keys() <= _WITH_STATUS",
        "True",
        PARTS,
    ),
    Bug(
        "a patch of 1 by true is taken for no change",
        "lab/apiserver/patches/merge_patch.py",
        "elif before.__class__ is not value.__class__ or before != value:",
        "elif before != value:",
        PARTS,
    ),
    Bug(
        "a new endpoint of a slice is not checked",
        "lab/apiserver/kinds/endpoints.py",
        "if id(endpoint) not in good:",
        "if not good:",
        PARTS,
    ),
    Bug(
        "a patch that takes the last item of a list leaves the list",
        "lab/apiserver/patches/kept.py",
        "return before if len(before) == len(after) and all(",
        "return before if all(",
        PARTS,
    ),
    Bug(
        "who writes again some of his fields keeps those that are gone",
        "lab/apiserver/patches/owners.py",
        "if before and not changes.removed and not difference(",
        "if before and not difference(",
        ("tests/core/test_lab_ownership.py",),
    ),
    Bug(
        "what sees pods alone sees nothing",
        "lab/apiserver/admission/chain.py",
        "if not one.sees or storage in one.sees",
        "if not one.sees",
        ("tests/core/test_lab_admission.py",),
    ),
]
