"""A call in lastcall's code that blocks the event loop fails its test."""

from collections.abc import Iterator

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, settings

settings.register_profile(
    "lastcall",
    deadline=None,  # how long an example takes says how busy the machine is
    suppress_health_check=[HealthCheck.too_slow],  # and so does how long it takes to be made up
    derandomize=True,  # what fails fails by the change at hand, and again
)
settings.load_profile("lastcall")

ALLOWED = {
    # What is told must be in the kernel's hands before it is done; one shutdown's journal is read in a millisecond.
    "lastcall/adapters/journal_files.py": ("append", "create", "reopen", "latest"),
    # Some bytes in the page cache: a thread would cost more, and SIGTERM would have to wait for it.
    "lastcall/adapters/processes/files.py": (
        *("__init__", "create", "forbid", "exit_code", "ended_at", "sigterm_recorded", "record_sigterm", "_text"),
        *("load", "forget", "forget_logs", "delete", "boot_id", "environment"),
    ),
    # /proc and /sys are memory.
    "lastcall/adapters/boot.py": ("boot_id",),
    "lastcall/adapters/watchdog_device.py": ("read",),
    "lastcall/adapters/processes/process.py": ("_current", "_kill_marked"),
    # Starting a pod: whether its program and directory are there, who its user is.
    "lastcall/adapters/processes/spec.py": ("check", "check_container", "command"),
    # Until the hook's program runs, as long as fork and exec take.
    "lastcall/adapters/processes/exec_hook.py": ("_spawn",),
    "lastcall/adapters/processes/execution.py": ("_on_pipes", "_on_terminal", "_over"),
    # Why there is no bus: a look into /run, which is memory.
    "lastcall/adapters/bus.py": ("_no_bus",),
    # The socket of a holder that is gone; /proc is memory.
    "lastcall/adapters/holder_process.py": ("remove", "_pidfd_of"),
    # Once at the start.
    "lastcall/adapters/kube/kubeconfig.py": ("find", "load", "in_cluster"),
    "lastcall/adapters/agent_lock.py": ("acquire", "_lock", "release"),
    "lastcall/wiring.py": ("__init__", "agent_beside_kubelet"),
    "lastcall/wiring_config.py": ("load_config",),
    # Times and sizes of a few small files, each second.
    "lastcall/adapters/logind_conf.py": ("_look", "settings", "write"),
    # A projected token is some bytes in memory, looked at once a minute.
    "lastcall/adapters/kube/credentials.py": ("read_text",),
    # A file without a name, in memory.
    "lastcall/adapters/kube/tls.py": ("load",),
    # The same, three for each run of a fence agent, and a line into a pipe; and where the agents are, which are local files.
    "lastcall/adapters/fencing/agent_process.py": ("memory", "_read", "put_off"),
    "lastcall/adapters/fencing/fence_agent.py": ("_path", "_schema"),
    # The library is imported when the first expression is compiled.
    "lastcall/lab/apiserver/cel.py": ("_compiled", "_environment"),
    # A test looks at what a program that runs beside it has left on the disk.
    "support/system.py": ("records", "clean_up"),
    "support/lab_node.py": ("files",),
    # The small files of a pod's volumes, when it starts and when it ends.
    "lastcall/lab/kubelet/volume_files.py": (
        *("make", "project", "before_mount", "mounted", "after_unmount", "known", "remove", "check_host_path"),
    ),
    # A line into the buffer of a file.
    "lastcall/lab/apiserver/audit.py": ("_keep",),
    # Messages and types, once, when they are first needed.
    "lastcall/lab/apiserver/protobuf_messages.py": ("_library",),
    "lastcall/lab/apiserver/schema/types.py": ("_table",),
    # The names of time zones, once, when the first is named.
    "lastcall/lab/apiserver/kinds/jobs.py": ("_zones",),
    # Documents that are read once, when somebody asks for them.
    "lastcall/lab/apiserver/openapi.py": ("_recorded",),
    "lastcall/lab/private_logind/private.py": ("write_drop_in", "drop_ins"),
}
"""Where lastcall may block the loop: file -> functions, each with the reason."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--api",
        choices=("lab", "kubeconfig"),
        default="lab",
        help="whom tests/conformance and the contract of the client ask: the lab (default), or the cluster of KUBECONFIG",
    )


@pytest.fixture(autouse=True, scope="session")
def blocking_calls_fail() -> Iterator[None]:
    with blockbuster_ctx("lastcall") as blockbuster:
        for function in blockbuster.functions.values():
            for file, names in ALLOWED.items():
                function.can_block_in(file, names)
        yield
