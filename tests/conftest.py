"""A call in lastcall's code that blocks the event loop fails its test."""

import gc
import os
from collections.abc import Generator, Iterator

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, settings
from support.common.run_order import lower_priority, order_tests, steps_back
from support.guard import rabbitmq_servers as rabbitmq
from support.guard.patroni_servers import PatroniServers, why_not

settings.register_profile(
    "lastcall",
    deadline=None,  # how long an example takes says how busy the machine is
    suppress_health_check=[HealthCheck.too_slow],  # and so does how long it takes to be made up
    derandomize=True,  # what fails fails by the change at hand, and again
)
settings.load_profile("lastcall")

ALLOWED = {
    # What is told must be in the kernel's hands before it is done; one shutdown's journal is read in a millisecond.
    "lastcall/adapters/state/journal_files.py": ("append", "create", "reopen", "latest"),
    # Some bytes in the page cache: a thread would cost more, and SIGTERM would have to wait for it.
    "lastcall_lab/processes/state_files.py": (
        *(
            "__init__",
            "create",
            "forbid_start",
            "exit_code",
            "ended_at",
            "sigterm_recorded",
            "record_sigterm",
            "_read_text",
        ),
        *("load", "forget", "forget_logs", "delete", "boot_id", "environment"),
    ),
    # Files of a control plane that a thread of its own starts, for no program of lastcall's.
    "support/kube/real_control_plane.py": ("running", "_run", "_ready", "kubeconfig", "account_kubeconfig"),
    # /proc and /sys are memory.
    "lastcall/adapters/host/boot.py": ("boot_id",),
    "lastcall/adapters/host/watchdog_device.py": ("read",),
    "lastcall_lab/processes/process.py": ("_current_identity", "_kill_marked"),
    # Starting a pod: whether its program and directory are there, who its user is.
    "lastcall_lab/processes/command_spec.py": ("check_manifest", "check_container", "container_command"),
    # Until the hook's program runs, as long as fork and exec take.
    "lastcall_lab/processes/exec_hook.py": ("_spawn_hook",),
    "lastcall_lab/processes/execution.py": ("_on_pipes", "_on_terminal", "_kill_rest"),
    # Why there is no bus: a look into /run, which is memory.
    "lastcall/adapters/systemd/bus.py": ("_no_bus",),
    # The socket of a holder that is gone; /proc is memory.
    "lastcall/adapters/logind/holder_process.py": ("remove_stale", "_pidfd_of"),
    # Once at the start.
    "lastcall/adapters/kube/kubeconfig.py": ("find_access", "load_kubeconfig", "in_cluster_access"),
    "lastcall/adapters/state/agent_lock.py": ("acquire", "_lock_file", "release"),
    "lastcall/wiring/agent.py": ("__init__",),
    "lastcall/wiring/agent_beside_kubelet.py": ("__init__",),
    "lastcall/wiring/config.py": ("load_config",),
    # Times and sizes of a few small files, each second.
    "lastcall/adapters/logind/delay_limit_files.py": ("_file_states", "list_drop_ins", "write_limit"),
    # A projected token is some bytes in memory, looked at once a minute.
    "lastcall/adapters/kube/credentials.py": ("read_text",),
    # A file without a name, in memory.
    "lastcall/adapters/kube/tls.py": ("load_certificate",),
    # The same, three for each run of a fence agent, and a line into a pipe; and where the agents are, which are local files.
    "lastcall/adapters/fencing/agent_process.py": ("memory_file", "_read_text", "extend_order"),
    "lastcall/adapters/fencing/fence_agent.py": ("_find_program", "_read_schema"),
    # The library is imported when the first expression is compiled.
    "lastcall_lab/apiserver/cel/evaluator.py": ("_compile", "_environment"),
    # A test looks at what a program that runs beside it has left on the disk.
    "support/agents/system_node.py": ("records", "clean_up"),
    "support/lab/virtual_node.py": ("files",),
    # The small files of a pod's volumes, when it starts and when it ends.
    "lastcall_lab/kubelet/volumes/pod_directories.py": (
        *(
            "make_empty",
            "write_projection",
            "volume_path",
            "record_mount",
            "mount_records",
            "forget_mount",
            "pod_uids",
            "remove",
            "host_path_problem",
        ),
    ),
    # A line into the buffer of a file.
    "lastcall_lab/apiserver/authorization/audit.py": ("_keep",),
    # Messages and types, once, when they are first needed.
    "lastcall_lab/apiserver/encoding/protobuf_messages.py": ("_library",),
    "lastcall_lab/apiserver/schema/types.py": ("_table",),
    # The names of time zones, once, when the first is named.
    "lastcall_lab/apiserver/kinds/jobs.py": ("_zones",),
    # Documents that are read once, when somebody asks for them.
    "lastcall_lab/apiserver/catalog/openapi.py": ("_recorded_document",),
    "lastcall_lab/private_logind/daemon.py": ("write_drop_in", "drop_ins"),
    # What tests and pytest read for themselves, hundreds of names at a time: the rest of the stack need not be looked at.
    "_pytest/pathlib.py": ("find_prefixed",),
    "support/host/locks.py": ("holders", "open_files"),
    "support/runtimes/process_pods.py": ("processes_of", "environment"),
}
"""Where lastcall may block the loop: file -> functions, each with the reason."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--api",
        choices=("lab", "kubeconfig"),
        default="lab",
        help="whom tests/conformance and the contract of the client ask: the lab (default), or the cluster of KUBECONFIG",
    )


def pytest_configure() -> None:
    """The garbage collector looks seldom: thousands of tests make a million objects that stay."""
    gc.set_threshold(5_000, 20, 10)


def pytest_collection_finish() -> None:
    """What is imported and collected stays until the end: no look goes through it again and again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In one process the order of the files is the best: what a file's tests share is set up once.

    Tests of a lower priority wait for the processors: unless they say otherwise, they have more time.
    """
    for item in items:
        if steps_back(item.path) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(600))
    if "PYTEST_XDIST_WORKER" in os.environ:
        items[:] = order_tests([(item.path, item) for item in items])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Tests that wait come first where processors are scarce."""
    with lower_priority(item.path):
        return (yield)


@pytest.fixture(autouse=True, scope="session")
def blocking_calls_fail() -> Iterator[None]:
    with blockbuster_ctx("lastcall") as blockbuster:
        for function in blockbuster.functions.values():
            for file, names in ALLOWED.items():
                function.can_block_in(file, names)
        yield


@pytest.fixture(scope="session")
def patroni_servers() -> Iterator[PatroniServers]:
    """Started once: tests of the xdist group ``patroni`` share them, and begin with ``make_whole``."""
    if reason := why_not():
        pytest.skip(reason)
    servers = PatroniServers()
    yield servers
    servers.end()


@pytest.fixture(scope="session")
def rabbitmq_servers() -> Iterator[rabbitmq.RabbitmqServers]:
    """Started once: tests of the xdist group ``rabbitmq`` share them, and begin with ``make_whole``."""
    if reason := rabbitmq.why_not():
        pytest.skip(reason)
    servers = rabbitmq.RabbitmqServers()
    yield servers
    servers.end()
