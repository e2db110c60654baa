"""``deadlines`` of an AgentConfiguration: what is understood, and what is said about what is not."""

import pytest

from lastcall.errors import InvalidInput
from lastcall.graceful.config import parse_config
from lastcall.model.deadline_settings import AzureEventType, DeadlineSettings
from lastcall.model.shutdown_notice import NoticeSource

HEAD = "apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\nshutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n"


def parsed(text, head=HEAD):
    return parse_config(f"{head}deadlines: {text}\n".encode(), "f")


def test_without_it_there_is_no_source():
    assert parse_config(HEAD.encode(), "f").deadlines == DeadlineSettings()
    assert DeadlineSettings().sources == ()
    assert parsed("{}").deadlines.sources == ()
    assert parsed("null").deadlines.sources == ()


def test_each_source_is_on_when_it_is_there():
    found = parsed("{socket: {}, ec2: {}, gcp: {}, azure: {}, nut: {ups: rack1@10.0.0.7}, leadSeconds: 60}").deadlines
    assert found.sources == tuple(NoticeSource)
    assert found.lead_seconds == 60
    assert found.ec2.endpoint == "http://169.254.169.254"
    assert found.azure.acknowledge is False
    assert found.nut.command == "/bin/upsc"
    assert parsed("{azure: {eventTypes: [Preempt], resourceName: vm_0}}").deadlines.azure.event_types == (
        AzureEventType.PREEMPT,
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("7", "deadlines: 7: must be a mapping, not an integer"),
        ("{sockets: {}}", "deadlines.sockets: {}: unknown field, did you mean socket?"),
        ("{socket: {path: /x}}", "deadlines.socket.path: "),
        ("{nut: {}}", "deadlines.nut.ups: missing: must be given"),
        ("{nut: {ups: '-V'}}", None),
        ("{nut: {ups: 'a b'}}", "deadlines.nut.ups: "),
        ("{nut: {ups: '@host'}}", "deadlines.nut.ups: "),
        ("{nut: {ups: u, command: upsc}}", "deadlines.nut.command: "),
        ("{ec2: {endpoint: 'https://169.254.169.254'}}", "deadlines.ec2.endpoint: "),
        ("{ec2: {endpoint: 'http://a/b'}}", "deadlines.ec2.endpoint: "),
        ("{gcp: {pollSeconds: 0}}", "deadlines.gcp.pollSeconds: 0: must be a number >= 1"),
        ("{azure: {eventTypes: [Freeze]}}", 'deadlines.azure.eventTypes[0]: "Freeze": must be '),
        ("{azure: {acknowledge: 1}}", "deadlines.azure.acknowledge: 1: must be true or false"),
        ("{leadSeconds: -1}", "deadlines.leadSeconds: -1: must be a number >= 0"),
        ("{ec2: {rebalance: Drain}}", 'deadlines.ec2.rebalance: "Drain": must be '),
    ],
)
def test_what_is_wrong_is_told_with_field_value_and_rule(text, said):
    if said is None:
        said = "deadlines.nut.ups: "
    with pytest.raises(InvalidInput) as error:
        parsed(text)
    assert any(one.startswith(said) for one in error.value.violations), error.value.violations


def test_a_source_without_phases_has_no_effect_and_that_is_said():
    head = "apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\n"
    assert parsed("{socket: {}}", head).warnings == (
        "deadlines: no effect, since no period is configured: a shutdown ends no pods",
    )
    assert parsed("{}", head).warnings == ()


def test_a_kubelet_s_file_has_no_deadlines():
    head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    assert parsed("{socket: {}}", head).deadlines.sources == ()
