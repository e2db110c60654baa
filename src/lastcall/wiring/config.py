"""Loads the agent's configuration from its file, and starts without one in the middle of a shutdown."""

from pathlib import Path

from msgspec import structs

from lastcall import names
from lastcall.adapters.host.boot import boot_id
from lastcall.adapters.host.bounded_reads import CONFIG_BYTES, read_file
from lastcall.adapters.state.journal_files import JournalFiles
from lastcall.errors import InvalidInput
from lastcall.graceful import config as configuration
from lastcall.graceful.config import AgentConfig
from lastcall.graceful.shutdown.resumption import ResumeDecision, resume_decision
from lastcall.model.shutdown import from_lines
from lastcall.model.shutdown_fold import fold_events


def load_config(path: Path) -> AgentConfig:
    """The configuration in a file; InvalidInput lists every violation.

    A relative path in it is relative to the file's directory (the kubelet's configfiles.go: resolveRelativePaths).
    """
    try:
        data = read_file(path, CONFIG_BYTES)
    except OSError as error:
        raise InvalidInput(str(path), [f"{error.strerror}"]) from error
    config = configuration.parse_config(data, str(path))
    if not config.static_pod_path:
        return config
    return structs.replace(config, static_pod_path=str(path.absolute().parent / config.static_pod_path))


def is_shutdown_under_way(journals: JournalFiles) -> bool:
    """Whether an earlier process left a shutdown of this boot, which this process must resume."""
    try:
        latest = journals.latest()
        record = fold_events(from_lines(latest[1])) if latest else None
    except (OSError, ValueError):
        return False
    return resume_decision(record, boot_id=boot_id(), preparing=True) in (
        ResumeDecision.RESUME,
        ResumeDecision.ALREADY_RELEASED,
    )


def load_starting_config(path: Path, journals: JournalFiles) -> tuple[AgentConfig, InvalidInput | None]:
    """The configuration to start with, and the error of an unreadable file.

    During a shutdown an invalid file gives an empty configuration, because the plan is in the journal. Otherwise an
    invalid file raises InvalidInput.
    """
    try:
        return load_config(path), None
    except InvalidInput as error:
        if is_shutdown_under_way(journals):
            return AgentConfig(kind=names.AGENT_CONFIGURATION), error
        raise
