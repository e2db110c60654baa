"""The images as they are delivered: built without a registry, listed by their SBOM, small; the agent's runs in containerd."""

import importlib.metadata
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from support.agents.agent_pod import AgentPod, agent_processes, wait_until
from support.agents.container_restarter import ensure_running
from support.agents.system_node import PATIENT
from support.host.logind import patient_logind  # noqa: F401  (a fixture)
from support.runtimes import containerd_world
from support.runtimes.private_containerd import shared_containerd

from lastcall import __version__

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("containerd-images")]

CONTAINER = Path(__file__).parents[2] / "deploy/container"
MEBIBYTE = 2**20


def needs(*programs):
    if os.geteuid() != 0:
        pytest.skip("root file systems are unpacked as root")
    if "Debian GNU/Linux 12" not in Path("/etc/os-release").read_text():
        pytest.skip("images are built from the packages of Debian 12")
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"there is no {program}")


def build(script, component, target):
    done = subprocess.run([CONTAINER / script, component, target], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The agent's image as an OCI archive; its SBOM is beside it."""
    needs("buildah", "apt-get", "python3.11")
    file = tmp_path_factory.mktemp("image") / "agent.tar"
    build("build-image", "agent", file)
    return file


@pytest.fixture(scope="module")
def image(archive):
    """Its name in the private containerd."""
    if reason := containerd_world.why_not():
        pytest.skip(reason)
    containerd = shared_containerd()
    name = f"localhost/lastcall-agent:{__version__}"
    ctr = ["ctr", "--address", str(containerd.socket), "--namespace", "k8s.io", "images", "import"]
    subprocess.run([*ctr, str(archive)], check=True, capture_output=True)
    return name


def blobs(archive):
    """The manifest, the configuration and the sizes of an image."""
    with tarfile.open(archive) as tar:

        def read(digest):
            return json.load(tar.extractfile(f"blobs/sha256/{digest.removeprefix('sha256:')}"))

        [listed] = json.load(tar.extractfile("index.json"))["manifests"]
        manifest = read(listed["digest"])
        return manifest, read(manifest["config"]["digest"])


def test_the_agents_image_is_small_and_says_what_it_is(archive):
    manifest, config = blobs(archive)
    assert sum(layer["size"] for layer in manifest["layers"]) < 40 * MEBIBYTE
    assert config["config"]["Entrypoint"] == ["lastcall"]
    assert config["config"]["Labels"]["org.opencontainers.image.version"] == __version__


def test_its_sbom_lists_what_is_installed(archive):
    bom = json.loads(archive.with_name(archive.name + ".cdx.json").read_text())
    assert bom["bomFormat"] == "CycloneDX"
    found = {component["purl"].split("?")[0] for component in bom["components"]}
    for name in ("msgspec", "dbus-fast", "grpclib", "protobuf", "click"):
        assert any(purl.startswith(f"pkg:pypi/{name}@") for purl in found), name
    assert f"pkg:pypi/lastcall@{__version__}" in found
    assert any(purl.startswith("pkg:deb/debian/python3.11-minimal@3.11") for purl in found)
    assert not any("pytest" in purl or "lastcall-lab" in purl for purl in found)
    required = importlib.metadata.requires("lastcall") or []
    core = {line.split(">")[0].split("<")[0].strip().lower() for line in required if "extra ==" not in line}
    assert core <= {purl.split("/")[1].split("@")[0] for purl in found if purl.startswith("pkg:pypi")}


async def test_the_agent_starts_from_its_image(image, patient_logind, tmp_path):  # noqa: F811
    """As the DaemonSet's container: supervised, without a shell, on a read-only root."""
    agent = AgentPod(tmp_path / "node", patient_logind, shared_containerd(), config=PATIENT, image=image)

    async def armed():
        return agent.says(r'"armed: \S+ for the pods') > 0

    await agent.create_sandbox()
    await ensure_running(agent.connection, agent.read_request())
    await wait_until(armed, agent.log)
    assert len(agent_processes(await agent.process_1())) >= 1
    await agent.stop(grace=60)
    [container] = await agent.containers()
    status = await agent.exit_status(container.id)
    assert status.exit_code == 0, agent.log()
    agent.connection.close()
    await shared_containerd().remove_pods()


def test_the_controllers_files_have_lastcall_and_the_fence_agents(tmp_path):
    needs("apt-get", "python3.11")
    root = tmp_path / "root"
    build("make-rootfs", "controller", root)

    def run(*command):
        return subprocess.run(["chroot", str(root), *command], capture_output=True, text=True, check=False, timeout=120)

    helped = run("/opt/lastcall/bin/lastcall", "controller", "--help")
    assert helped.returncode == 0, helped.stderr
    assert "Usage: lastcall controller" in helped.stdout
    for agent in ("fence_ipmilan", "fence_apc_snmp", "fence_redfish"):
        described = run(f"/usr/sbin/{agent}", "-o", "metadata")
        assert described.returncode == 0, described.stderr
        assert "<resource-agent" in described.stdout
    assert run("/usr/bin/ipmitool", "-V").returncode == 0
    fetched = run("/opt/lastcall/bin/python3", "-c", "import boto3, sushy")
    assert fetched.returncode == 0, fetched.stderr
    size = sum(file.stat().st_size for file in root.rglob("*") if not file.is_symlink())
    assert size < 400 * MEBIBYTE
    shutil.rmtree(root)
