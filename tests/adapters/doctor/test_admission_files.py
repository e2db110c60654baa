"""Files from which an API server of this machine loads webhooks, where the host has them."""

import json

import pytest

from lastcall.adapters.doctor.admission_files import read_static_webhooks
from lastcall.doctor.facts import HostFile

INSIDE = "/etc/kubernetes/admission"


def api_server(*arguments, mounts=((INSIDE, "admission"),), hosts=(("admission", "/srv/admission"),)):
    """The manifest of a static pod."""
    container = {
        "name": "kube-apiserver",
        "command": ["kube-apiserver", *arguments],
        "volumeMounts": [{"name": name, "mountPath": path} for path, name in mounts],
    }
    volumes = [{"name": name, "hostPath": {"path": path}} for name, path in hosts]
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container], "volumes": volumes}}
    return HostFile(path="/m/kube-apiserver.yaml", data=json.dumps(pod).encode())


OPTION = f"--admission-control-config-file={INSIDE}/config.yaml"


@pytest.fixture
def host(tmp_path):
    """The file that the option names, and two directories with one file each."""
    plugins = [
        {"name": f"{name}AdmissionWebhook", "configuration": {"staticManifestsDir": f"{INSIDE}/{name}"}}
        for name in ("Validating", "Mutating")
    ]
    plugins.append({"name": "ValidatingAdmissionPolicy", "configuration": {"staticManifestsDir": f"{INSIDE}/none"}})
    where = tmp_path / "srv/admission"
    for name in ("Validating", "Mutating"):
        (where / name).mkdir(parents=True)
        (where / name / "hooks.yaml").write_text(name)
    (where / "config.yaml").write_text(json.dumps({"kind": "AdmissionConfiguration", "plugins": plugins}))
    return tmp_path


def found(host, *manifests):
    return [one.data.decode() for one in read_static_webhooks(host, manifests)]


def test_what_an_api_server_loads_is_read_from_the_hosts_directories(host):
    assert found(host, api_server(OPTION)) == ["Validating", "Mutating"]


def test_the_last_option_counts(host):
    assert found(host, api_server("--admission-control-config-file=/gone", OPTION)) == ["Validating", "Mutating"]


def test_the_innermost_mount_counts(host):
    mounts = (("/etc", "etc"), (INSIDE, "admission"))
    assert found(host, api_server(OPTION, mounts=mounts, hosts=(("etc", "/x"), ("admission", "/srv/admission"))))


@pytest.mark.parametrize(
    "manifest",
    [
        api_server(),
        api_server(OPTION, mounts=()),
        api_server(OPTION, hosts=()),
        HostFile(path="/m/a.yaml", data=b"a: ["),
        HostFile(path="/m/a.yaml", data=b"[]"),
        HostFile(path="/m/a.yaml", data=b"spec: 7"),
        HostFile(path="/m/a.yaml", data=b"spec: {containers: [{command: [etcd]}, 7]}"),
    ],
)
def test_a_pod_that_loads_none_has_none(host, manifest):
    assert found(host, manifest) == []


def test_a_file_that_cannot_be_read_is_an_error(host):
    (host / "srv/admission/config.yaml").unlink()
    with pytest.raises(FileNotFoundError):
        found(host, api_server(OPTION))
