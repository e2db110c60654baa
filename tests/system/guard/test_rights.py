"""The guard lends its rights to nobody: who writes a GuardPolicy needs what it has the guard do. By the real kubectl."""

import json
import subprocess
import time

import pytest
from support.kube.kubectl import PROGRAM
from support.lab.up_process import LabProcess

pytestmark = pytest.mark.timeout(270)


class Shop:
    """A lab with a guard, and a developer who may write GuardPolicies in ``default``."""

    def __init__(self, directory):
        self.lab = LabProcess(directory, "--guard")
        self.lab.start()
        end = time.monotonic() + 60
        while "lastcall-guard" not in self("get validatingwebhookconfigurations -o name"):
            assert time.monotonic() < end
            time.sleep(0.2)
        self.permit("policies", "--verb=create,update,patch,get --resource=guardpolicies.lastcall.dev")

    def __call__(self, line, obj=None):
        said = subprocess.run(
            [PROGRAM, f"--kubeconfig={self.lab.kubeconfig}", *line.split()],
            input=json.dumps(obj) if obj else "",
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        return said.stdout + said.stderr

    def permit(self, name, what):
        self(f"create role {name} {what}")
        self(f"create rolebinding {name} --role={name} --user=dev")

    def write(self, provider, name="p"):
        policy = {
            "apiVersion": "lastcall.dev/v1alpha1",
            "kind": "GuardPolicy",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"provider": provider},
        }
        return self("create --as=dev -f -", policy)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    made = Shop(tmp_path_factory.mktemp("lab"))
    yield made
    made.lab.end()


def test_commands_only_from_who_may_run_commands(shop):
    said = shop.write({"exec": {"prepare": ["true"]}}, "commands")
    assert "forbidden" in said
    assert "must have the right to create pods/exec" in said
    shop.permit("exec", "--verb=create --resource=pods/exec")
    assert "created" in shop.write({"exec": {"prepare": ["true"]}}, "commands")


def test_a_secret_only_from_who_may_read_it(shop):
    redis = {"redis": {"passwordSecret": {"name": "auth"}}}
    said = shop.write(redis, "secret")
    assert "whoever names a Secret must have the right to get it" in said
    shop.permit("other", "--verb=get --resource=secrets --resource-name=other")
    assert "whoever names a Secret" in shop.write(redis, "secret")
    shop.permit("auth", "--verb=get --resource=secrets --resource-name=auth")
    assert "created" in shop.write(redis, "secret")


def test_a_provider_that_needs_no_rights_is_for_everybody(shop):
    assert "created" in shop.write({"redis": {"port": 6379}}, "plain")
