"""``lastcall guard run`` of a version to come, as a program: it knows one more state, and one more field of entries.

It prepares in the state ``Draining`` instead of ``Preparing``, and says the ``stage`` of each entry that it changes.
"""

import sys

from lastcall.adapters.kube import guard_records
from lastcall.cli.main import main
from lastcall.model.guard_policy import PreparationState

STATE, FIELD = "Draining", "stage"

write_entry = guard_records._entry_object


def read_state(cls, value):
    return cls.PREPARING if value == STATE else cls.UNKNOWN


def write_next_entry(entry, before, stored):
    written = write_entry(entry, before, stored)
    if entry == before:
        return written
    return written | {"state": STATE if written["state"] == "Preparing" else written["state"], FIELD: "fence"}


if __name__ == "__main__":  # not in a process that only imports the names above
    PreparationState._missing_ = classmethod(read_state)
    guard_records._entry_object = write_next_entry
    sys.exit(main())
