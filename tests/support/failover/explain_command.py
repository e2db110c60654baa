"""``lastcall failover explain``, as it is called with a file."""

import json

from click.testing import CliRunner
from support.failover.snapshots import attachment, lease, node, pod, state, volume

from lastcall.cli.main import cli

AT = "2026-11-21T12:00:00Z"


def policy(name="workers", **spec):
    found = {"mode": "Enforce", "suspectAfter": "40s", "fencers": [{"name": "bmc", "manual": {}}], **spec}
    return {"apiVersion": "lastcall.dev/v1alpha1", "kind": "FencePolicy", "metadata": {"name": name}, "spec": found}


def machine(name, ready="Unknown", *taints, boot=None, annotations=None, **fields):
    found = node(name, ready, *taints, **fields)
    found["metadata"]["annotations"] = annotations or {}
    boot = ("b-1" if name == "n1" else f"b-{name}") if boot is None else boot
    found["status"]["nodeInfo"] = {"bootID": boot, "systemUUID": f"m-{name}"}
    return found


OTHERS = [part for name in ("n2", "n3", "n4") for part in (machine(name, "True"), lease(name, 3))]
WITH_UID = pod("db-0", "n1", claim="data")
WITH_UID["metadata"]["uid"] = "u1"
CLUSTER = [machine("n1"), lease("n1", 25), *OTHERS, WITH_UID, volume("v", "data"), attachment("va-v", "v", "n1")]


def run(target, *objects, options=(), now=AT):
    arguments = ["failover", "explain", target, "--state", "-", "--now", now, *options]
    return CliRunner().invoke(cli, arguments, input=state(*(objects or (*CLUSTER, policy()))))


def document(target, *objects, options=(), **more):
    result = run(target, *objects, options=("-o", "json", *options), **more)
    assert result.exit_code == 0, result
    return json.loads(result.stdout)
