"""The options of ``lastcall manifests pod-policies``; what the policies do is in tests/cluster."""

import pytest
import yaml
from click.testing import CliRunner

from lastcall.cli.main import cli
from lastcall.errors import InvalidInput
from lastcall.manifests.pod_policies import pod_policy_objects


def test_the_command_prints_them_with_the_seconds_asked_for():
    done = CliRunner().invoke(cli, ["manifests", "pod-policies", "--settle-seconds=9"])
    assert (done.exit_code, list(yaml.safe_load_all(done.output))) == (0, pod_policy_objects(seconds=9))
    assert pod_policy_objects(seconds=9) != pod_policy_objects()


@pytest.mark.parametrize("seconds", [-1, 601])
def test_seconds_that_cannot_be(seconds):
    with pytest.raises(InvalidInput, match=f"--settle-seconds: {seconds}: must be 0 to 600"):
        pod_policy_objects(seconds=seconds)
