"""What the documentation says and can be compared: links, commands, options, names, the diagram, the unit."""

import configparser
import fnmatch
import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from lastcall import names
from lastcall.adapters.telemetry.agent_metrics import AgentMetrics
from lastcall.adapters.telemetry.controller_metrics import ControllerMetrics
from lastcall.adapters.telemetry.guard_metrics import GuardMetrics
from lastcall.cli.main import cli
from lastcall.doctor import host_checks
from lastcall.doctor.all_checks import CHECKS
from lastcall.doctor.facts import HostFacts, ServiceUnit, UnknownFact
from lastcall.doctor.finding import CheckVerdict
from lastcall.failover.decisions import decision_table
from lastcall.failover.evidence.proofs import ProofKind
from lastcall.failover.reporting.stages import Stage
from lastcall.graceful import config, state_machine
from lastcall.manifests import resource_definitions
from lastcall.model import decoding, guard_config
from lastcall.model.config_file import field_names
from lastcall.model.fence_policy_reader import parse_policy as read_policy
from lastcall.model.node_traffic import NodeTraffic, PodConnections, render_traffic
from lastcall.model.proxy_sync import ProxySync

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
CLI = ROOT / "docs/reference/cli.md"
SOURCES = (ROOT / "src/lastcall", ROOT / "src/lastcall_lab")
UNIT = ROOT / "deploy/systemd/lastcall-agent.service"


def identity(path):
    return str(path.relative_to(ROOT))


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))


def anchors(path):
    """As GitHub makes them from headings."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=identity)
def test_links_lead_somewhere(page):
    broken = []
    for target in re.findall(r"\]\(([^)]+)\)", without_code(page.read_text())):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            broken.append(target)
    assert broken == []


def test_every_page_can_be_reached_from_the_readme():
    seen, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen or page.suffix != ".md" or not page.exists():
            continue
        seen.add(page)
        targets = re.findall(r"\]\(([^)#]+)", without_code(page.read_text()))
        todo += [(page.parent / target).resolve() for target in targets if "://" not in target]
    assert set(PAGES) - seen == set()


TESTS = {
    (identity(path), name)
    for path in ROOT.glob("tests/**/test_*.py")
    for name in re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
}


@pytest.mark.parametrize("page", PAGES, ids=identity)
def test_tests_and_files_that_are_named_exist(page):
    """As ``test_name[case]``, as a path from the top of the tree, or as one of a module of either distribution."""
    named = set(re.findall(r"`([^`\n]+)`", page.read_text()))
    tests = {match[1] for text in named if (match := re.fullmatch(r"(test_\w+)(?:\[.*\])?", text))}
    assert tests - {name for _, name in TESTS} == set()
    tree = [text for text in named if re.fullmatch(r"(?:tests|tools|bench|src|deploy|\.ci)/[\w./*-]+", text)]
    assert [path for path in tree if not [*ROOT.glob(path)]] == []
    folders = "|".join({path.name for source in SOURCES for path in source.iterdir() if path.is_dir()})
    modules = [text for text in named if re.fullmatch(rf"(?:{folders})/[\w/]+\.py", text)]
    assert [path for path in modules if not any((source / path).exists() for source in SOURCES)] == []


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/design/*.md")), ids=identity)
def test_pages_of_the_design_are_short(page):
    """Tables and diagrams cannot be wrapped."""
    lines = page.read_text().splitlines()
    assert len(lines) < 250
    assert [line for line in lines if len(line) > 120 and not line.startswith("|")] == []


def test_tests_that_may_be_skipped_exist_and_say_why():
    lines = (ROOT / "tests" / "may-skip.txt").read_text().splitlines()
    rows = [[part.strip() for part in line.partition(" #")[::2]] for line in lines if line and not line.startswith("#")]
    assert [test for test, reason in rows if not reason] == []
    named = [test.partition("[")[0].split("::") for test, _ in rows]
    known = {f"{path}::{name}" for path, name in TESTS}
    assert [parts for parts in named if not fnmatch.filter(known, f"{parts[0]}::{parts[-1]}")] == []


def test_the_names_page_is_current():
    assert (ROOT / "docs/reference/names.md").read_text() == names.reference_page()


def test_the_diagram_is_the_tables():
    page = (ROOT / "docs/design/shutdown.md").read_text()
    [block] = re.findall(r"^```mermaid\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert block == state_machine.mermaid_diagram()


def test_the_course_of_a_failover_is_its_table():
    assert decision_table.markdown_table() in (ROOT / "docs/design/failover.md").read_text()


# -- the command line --------------------------------------------------------------------------------------------------


def commands(command=cli, path=()):
    """Every verb with its full name."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), (*path, name))
    else:
        yield " ".join(path), command


VERBS = dict(commands())


def section(verb):
    """A verb's part of the reference; the lab's node has the agent's options by reference."""
    text = CLI.read_text()
    [part] = re.findall(rf"^## lastcall {verb}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return part + (section("agent") if verb == "lab node" else "")


def test_every_command_is_in_the_table_of_the_reference():
    table = CLI.read_text().partition("## Exit codes")[0]
    assert [verb for verb in VERBS if f"| [`{verb}`](#lastcall-{verb.replace(' ', '-')}) |" not in table] == []


def spellings(parameter):
    """Of an option: also the one that switches it off."""
    return [*parameter.opts, *parameter.secondary_opts]


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_in_the_reference(verb):
    part = section(verb) + (section("lab node") if verb != "lab node" else "")
    options = [option for parameter in VERBS[verb].params for option in spellings(parameter) if option.startswith("-")]
    assert [option for option in options if f"`{option}" not in part and f", `{option}" not in part] == []


@pytest.mark.parametrize("verb", VERBS)
def test_the_reference_has_no_option_that_is_not_there(verb):
    known = {option for parameter in VERBS[verb].params for option in spellings(parameter)} | {"-h", "--help"}
    told = set(re.findall(r"^\| (?:`-\w`, )?`(--[\w-]+)", section(verb), re.MULTILINE))
    elsewhere = {
        "--kubelet-unit",
        "--kubelet-root-dir",
        "--kubeconfig",
        "--in-cluster",
        "--supervise",
        "--secure-metrics-bind-address",
        "--tls-cert-file",
    }  # which it lacks
    assert told - known - (elsewhere if verb == "lab node" else set()) == set()


@pytest.mark.parametrize("verb", VERBS)
def test_defaults_in_the_reference_are_true(verb):
    for parameter in VERBS[verb].params:
        row = re.search(rf"^\| (?:`-\w`, )?`{parameter.opts[-1]}[ `].*$", section(verb), re.MULTILINE)
        if not row or parameter.default in (None, False) or not isinstance(parameter.default, (str, Path)):
            continue
        assert f"`{parameter.default}`" in row[0], row[0]


def shell_lines():
    """Every line of the documentation that calls lastcall, as a test's parameter."""
    for page in PAGES:
        for line in re.findall(r"^ {4,}(.*\blastcall [a-z].*)$", page.read_text(), re.MULTILINE):
            if match := re.search(
                r"(?:^|\| |sudo )(?:\S*/)?lastcall ((?:lab |failover |guard |manifests )?[a-z]+(?:-[a-z]+)*)\b([^|>#]*)",
                line,
            ):
                yield pytest.param(match[1], match[2], id=f"{identity(page)}: {line.strip()[:60]}")


@pytest.mark.parametrize(("verb", "arguments"), list(shell_lines()))
def test_commands_that_are_printed_exist(verb, arguments):
    assert verb in VERBS
    known = {option for parameter in VERBS[verb].params for option in (*spellings(parameter), "--help")}
    assert set(re.findall(r"(?<!\S)(--?[a-z][\w-]*)", arguments)) - known == set()


def test_what_is_cloned_has_an_address():
    """A line with a word in its place cannot be pasted."""
    printed = [line for page in PAGES for line in re.findall(r"git clone .*", page.read_text())]
    assert [line for line in printed if not re.match(r"git clone (-\S+ )*(https://|ssh://|git@)", line)] == []


def test_make_targets_that_are_printed_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    printed = [re.findall(r"^ {4,}make ([a-z ]+)|`make ([a-z ]+)`", page.read_text(), re.MULTILINE) for page in PAGES]
    words = {word for found in printed for pair in found for words in pair for word in words.split()}
    assert {"demo", "test", "check"} <= words <= targets


def test_exit_codes_of_the_help_are_the_references():
    codes = re.findall(r"(\d) ([a-z ]+)", cli.help.partition("Exit codes: ")[2].replace("\n", " "))
    assert [code for code, _ in codes] == re.findall(r"^\| (\d) \|", CLI.read_text(), re.MULTILINE)


def test_the_checks_of_doctor_are_named():
    [told] = re.findall(r"The names, in their order: (.*?)\. The", CLI.read_text(), re.DOTALL)
    assert re.findall(r"`([\w-]+)`", told) == list(CHECKS)


# -- metrics, configuration, unit --------------------------------------------------------------------------------------


def test_every_metric_is_a_name_and_in_the_reference():
    pages = [one.render_text().decode() for one in (AgentMetrics(), ControllerMetrics(), GuardMetrics())]
    pages.append(
        render_traffic(NodeTraffic(ProxySync(1, 1, 1), 1.0, PodConnections({"": 1}, True), {"": True}), 1).decode()
    )
    served = set(re.findall(r"^# TYPE (\S+)", "\n".join(pages), re.MULTILINE))
    served = {name for name in served if not name.endswith("_created")}
    assert served == {name.text for name in names.ALL if name.kind == "metric"}
    page = (ROOT / "docs/reference/metrics.md").read_text()
    assert [name for name in served if f"| `{name}` |" not in page] == []
    assert [one.value for one in (*Stage, *ProofKind) if f"\n| `{one.value}` |" not in page] == []


def yaml_blocks(kind):
    for page in PAGES:
        for number, block in enumerate(re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)):
            if re.search(rf"^kind: {kind}$", block, re.MULTILINE):
                yield pytest.param(block, id=f"{identity(page)} {number}")


@pytest.mark.parametrize("block", [*yaml_blocks("AgentConfiguration"), *yaml_blocks("KubeletConfiguration")])
def test_configurations_that_are_printed_are_valid(block):
    settings = config.parse_config(block.encode(), "page")
    assert settings.is_enabled
    assert settings.warnings == ()


@pytest.mark.parametrize("block", [*yaml_blocks("GuardConfiguration")])
def test_guard_configurations_that_are_printed_are_valid(block):
    assert guard_config.parse_guard_config(block.encode(), "page") != guard_config.DEFAULTS


def test_the_reference_has_every_field_of_the_guards_configuration():
    page = (ROOT / "docs/reference/configuration.md").read_text()
    assert [name for name in field_names(guard_config.GuardConfig) if f"\n| `{name}` |" not in page] == []


@pytest.mark.parametrize("block", [*yaml_blocks("FencePolicy")])
def test_policies_that_are_printed_are_valid(block):
    for found in decoding.parse_documents(block.encode(), "page"):
        assert found["kind"] != "FencePolicy" or read_policy(found)


def test_the_reference_has_every_field_of_a_policy_with_its_default():
    """Fields that only lead to others stand in headings or in the row of their parent."""
    page = (ROOT / "docs/reference/fence-policy.md").read_text()
    [version] = resource_definitions.fence_policy_definition()["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    for name, schema in policy_fields(spec):
        assert f"`{name}`" in page or f"### {name}\n" in page, name
        default = schema.get("default")
        if schema.get("type") != "object" and default is not None:
            text = json.dumps(default) if isinstance(default, bool) else str(default)
            assert f"| `{name}` | `{text}` |" in page or f"`{name}` (`{text}`)" in page, name


def policy_fields(schema):
    for name, inner in (schema.get("properties") or {}).items():
        yield name, inner
        yield from policy_fields(inner)
        yield from policy_fields(inner.get("items") or {})
        others = inner.get("additionalProperties")
        yield from policy_fields(others if isinstance(others, dict) else {})


def test_the_ladder_is_planned_as_the_page_says():
    """The numbers of the page, which shows the same as a table."""
    folder = ROOT / "docs/examples/ladder"
    line = [sys.executable, "-m", "lastcall", "plan", "--config=agent.yaml", "--pods=pods.yaml", "--node=worker-1"]
    said = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=True, env={"COLUMNS": "100"}).stdout
    [block] = re.findall(
        r"^```\n(At most 2m0s.*?)^```", (ROOT / "docs/how-to/phases.md").read_text(), re.DOTALL | re.MULTILINE
    )
    assert [line.split() for line in block.splitlines()] == [line.split() for line in said.splitlines()]


def test_the_unit_keeps_the_lock():
    """Judged as doctor judges it, on a systemd that does not tell of its store by itself."""
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read_string(UNIT.read_text())
    service = unit["Service"]
    found = ServiceUnit(
        name=host_checks.AGENT_UNIT,
        kill_mode=service.get("KillMode", "control-group"),
        stored_descriptors=int(service["FileDescriptorStoreMax"]),
        environment=(service["Environment"],),
    )
    unknown = dict.fromkeys(HostFacts.__struct_fields__, UnknownFact(reason="not asked"))
    facts = HostFacts(**{**unknown, "systemd_version": "252", "agent_unit": found})
    assert host_checks.check_unit(facts).verdict is CheckVerdict.OK
    assert UNIT.name == host_checks.AGENT_UNIT
    assert unit["Unit"]["StartLimitIntervalSec"] == "0", "a unit that is given up loses its store"
    assert service["Restart"] == "always"
    assert service["Type"] == "notify"


def test_no_stray_file_stands_at_the_root():
    """Such as the output of a trial, which would go into every clone."""
    found = {path.name for path in ROOT.iterdir() if path.is_file() and not path.name.startswith(".")}
    assert {name for name in found if not name.endswith(".md")} == {"LICENSE", "Makefile", "pyproject.toml"}
