"""``python patient_program.py FILE ARGUMENTS``: ``lastcall ARGUMENTS`` on a machine whose boot has the id in FILE.

A test cannot boot its machine, and machines that run tests are busy: an API server that needs longer than a quarter of a
second for an answer is not silent here. Everything else is the real program.
"""

import sys
from pathlib import Path

from lastcall.adapters.host import boot
from lastcall.graceful.cluster import traffic_wait

file = Path(sys.argv.pop(1))
boot.boot_id = lambda: file.read_text().strip()
traffic_wait.ANSWER_SECONDS = 10.0

from lastcall.cli.main import main  # noqa: E402 - what it imports takes these two

main()
