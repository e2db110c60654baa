"""What is said to a fence agent, what its answer means, and what is wrong with its parameters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.adapters.fencing.agent_protocol import (
    AgentResult,
    failure_reason,
    power_answer,
    redact_and_shorten,
    stdin_lines,
)
from lastcall.adapters.fencing.agent_schema import parameter_violations, parse_metadata
from lastcall.adapters.fencing.redaction import HIDDEN
from lastcall.errors import InvalidInput
from lastcall.model.power import PowerState

METADATA = b"""<?xml version="1.0" ?>
<resource-agent name="fence_x" shortdesc="An agent">
<parameters>
  <parameter name="action" required="1"><content type="string" default="reboot"/></parameter>
  <parameter name="ip" required="1" obsoletes="ipaddr"><content type="string"/></parameter>
  <parameter name="ipaddr" required="1" deprecated="1"><content type="string"/></parameter>
  <parameter name="ipport" required="0"><content type="integer" default="623"/></parameter>
  <parameter name="lanplus" required="0"><content type="boolean" default="0"/></parameter>
  <parameter name="auth" required="0"><content type="select">
    <option value="&quot;md5&quot;"/><option value="password"/></content></parameter>
  <parameter name="login_timeout" required="0"><content type="second" default="5"/></parameter>
  <parameter name="password" required="0"><content type="string"/></parameter>
  <parameter name="password_script" required="0"><content type="string"/></parameter>
  <parameter name="ssh_path" required="0"><content type="string"/></parameter>
  <parameter name="verbose" required="0"><content type="boolean"/></parameter>
  <parameter name="debug_file" required="0"><content type="string"/></parameter>
</parameters>
<actions><action name="on" automatic="0"/><action name="off"/><action name="status"/></actions>
</resource-agent>
"""
SCHEMA = parse_metadata("fence_x", METADATA)
REDFISH = parse_metadata("fence_redfish", METADATA.replace(b'"ssh_path"', b'"systems_uri"'))


def wrong(parameters, secrets=(), schema=SCHEMA):
    return parameter_violations(schema, parameters, dict(secrets))


@pytest.mark.parametrize(
    ("code", "out", "power"),
    [
        (0, "Status: ON\n", PowerState.ON),
        (2, "Status: OFF\n", PowerState.OFF),
        (2, "status: off\n", PowerState.OFF),
        (2, "", PowerState.UNKNOWN),
        (0, "", PowerState.UNKNOWN),
        (0, "Status: OFF\n", PowerState.UNKNOWN),
        (2, "Status: ON\n", PowerState.UNKNOWN),
        (1, "Status: OFF\n", PowerState.UNKNOWN),
        (None, "Status: OFF\n", PowerState.UNKNOWN),
        (2, "Status: OFF\nStatus: ON\n", PowerState.UNKNOWN),
        (2, "the last Status: OFF was long ago\n", PowerState.UNKNOWN),
        (2, "Status: OFFLINE\n", PowerState.UNKNOWN),
        (0, "Success: Powered OFF\n", PowerState.UNKNOWN),
    ],
)
def test_the_status_takes_exit_code_and_text(code, out, power):
    answer = power_answer(AgentResult(code, out), ())
    assert answer.power is power
    assert bool(answer.why) is (power is PowerState.UNKNOWN)


@pytest.mark.parametrize(
    ("ended", "sentence"),
    [
        (AgentResult(None), "it did not end in its time and was killed"),
        (AgentResult(2), "it was given wrong parameters (exit code 2)"),
        (
            AgentResult(3, said="2026-11-21 21:00:00,1 ERROR: Unable to connect/login to fencing device\n\n"),
            "exit code 3): Unable",
        ),
        (
            AgentResult(
                1,
                said="x.py:5: DeprecationWarning: pipes\n2026 ERROR: no route\n2026 ERROR: Please use '-h' for usage\n",
            ),
            "it failed (exit code 1): no route",
        ),
        (AgentResult(99, out="odd\n"), "it failed (exit code 99): odd"),
    ],
)
def test_why_it_failed(ended, sentence):
    assert sentence in failure_reason(ended, ())


@pytest.mark.parametrize(
    "shown",
    ['it\'s a "se cret"', "'it'\"'\"'s a \"se cret\"'", "it%27s%20a%20%22se%20cret%22", "it%27s+a+%22se+cret%22"],
    ids=["plain", "for a shell", "in an address", "in a form"],
)
def test_secrets_are_hidden_however_they_are_spelled(shown):
    assert redact_and_shorten(f"failed at {shown} there", ['it\'s a "se cret"']) == f"failed at {HIDDEN} there"


@given(st.text(min_size=1), st.text(), st.text())
def test_no_secret_is_left_in_a_message(secret, before, after):
    told = redact_and_shorten(f"{before}{secret}{after}", [secret]).replace(HIDDEN, "").removesuffix("...")
    if not set(secret) <= set("*."):
        assert secret not in told or secret in before + after


def test_a_secret_that_stands_in_another_is_hidden_with_it():
    assert redact_and_shorten("pass password", ["pass", "password"]) == f"{HIDDEN} {HIDDEN}"


def test_what_is_told_to_an_agent():
    told = stdin_lines("off", {"ip": "10.0.0.1", "password": " blank", "login": '"quoted"', "plug": "", "x": "a=b"})
    assert told == b'action=off\nip=10.0.0.1\npassword=" blank"\nlogin=""quoted""\nplug=\nx=a=b\n'


def test_nothing_is_wrong():
    assert (
        wrong({"ip": "h", "ipport": "623", "lanplus": "1", "auth": "md5", "login_timeout": "5"}, {"password": "x"})
        == []
    )
    assert wrong({"ipaddr": "h", "lanplus": "True"}) == []


@pytest.mark.parametrize(
    ("parameters", "secrets", "message"),
    [
        ({}, {}, "ip: must be given, fence_x needs it"),
        ({"ip": "h", "foo": "1"}, {}, "foo: 1: fence_x knows no parameter foo"),
        ({"ip": "h", "ipport": "x"}, {}, "ipport: x: must be a whole number"),
        ({"ip": "h", "login_timeout": "-1"}, {}, "login_timeout: -1: must be a number of whole seconds"),
        ({"ip": "h", "lanplus": "maybe"}, {}, "lanplus: maybe: must be 1 or 0"),
        ({"ip": "h", "auth": "none"}, {}, "auth: none: must be one of md5, password"),
        ({"ip": "h", "action": "on"}, {}, "action: on: is lastcall's to give"),
        ({"ip": "h", "verbose": "1"}, {}, "verbose: 1: writes passwords into logs"),
        ({"ip": "h", "debug_file": "/tmp/x"}, {}, "debug_file: /tmp/x: writes passwords into a file"),
        ({"ip": "h", "ssh_path": "/bin/sh"}, {}, "ssh_path: /bin/sh: would run a program that the policy names"),
        ({"ip": "h"}, {"password_script": "x"}, "password_script: (secret): would run a program that the policy names"),
        ({"ip": "h", "password": "x"}, {}, "password: (secret): must stand in secretParameters"),
        ({"ip": "h"}, {"password": "a\nb"}, "password: (secret): must be one line"),
        ({"ip": "h", "ipaddr": "h"}, {}, "ipaddr: is the old name of ip, which is given too"),
        (
            {"ip": "h"},
            {"ip": "g"},
            "ip: must not stand among parameters and secretParameters both",
        ),
    ],
)
def test_what_is_wrong(parameters, secrets, message):
    assert wrong(parameters, secrets) == [message]


@pytest.mark.parametrize("name", ["password", "snmp_priv_passwd", "apikey", "token", "secret_key", "community"])
def test_what_is_secret_is_refused_where_it_can_be_read_and_not_shown(name):
    told = wrong({"ip": "h", name: "s3\ncret"})
    assert f"{name}: (secret): must stand in secretParameters" in told
    assert "s3" not in " ".join(told)
    assert f"{name}: (secret): must stand in secretParameters" not in wrong({"ip": "h"}, {name: "x"})


def test_fence_redfish_needs_to_be_told_its_system():
    assert wrong({"ip": "h", "systems_uri": "/redfish/v1/Systems/1"}, schema=REDFISH) == []
    for known in ({"ip": "h"}, {"ip": "h", "systems_uri": ""}):
        assert wrong(known, schema=REDFISH) == [
            "systems_uri: must be given, or the agent takes the last of all systems, whichever machine that is"
        ]


def test_what_an_agent_can_do():
    assert {"on", "off", "status"} == SCHEMA.actions


@pytest.mark.parametrize("text", [b"", b"usage: fence_x", b"<resource-agent/>"])
def test_what_is_no_description(text):
    with pytest.raises(InvalidInput, match="fence_x: metadata"):
        parse_metadata("fence_x", text)
