"""The real iptables and nft in a network namespace of the test's own: which addresses their rules name."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.virtual_time.manual_clock import Hand

from lastcall.adapters.host import kernel_rules
from lastcall.adapters.host.kernel_rules import FAILED_SECONDS, REUSE_SECONDS, KernelRules

KUBE_PROXY = """
table ip kube-proxy {
  chain endpoint-A { meta l4proto tcp dnat to 10.180.0.1:80; }
  chain services { type nat hook prerouting priority dstnat; policy accept; ip daddr 172.30.0.41 tcp dport 80 goto endpoint-A; }
}
table ip6 kube-proxy {
  chain endpoint-B { meta l4proto tcp dnat to [fd00::7]:80; }
}
"""
WANTED = ("10.0.0.1", "10.0.0.2", "10.180.0.1", "fd00::7")


class Place:
    """A network namespace."""

    def __init__(self):
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._holder.stdout.readline(), "it is there"
        self.prefix = ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net"]

    def run(self, *command, said=None):
        subprocess.run([*self.prefix, *command], check=True, input=said, text=True, capture_output=True)

    def end(self):
        self._holder.communicate()


@pytest.fixture
def place():
    if os.geteuid() or not shutil.which("nft") or not shutil.which("iptables"):
        pytest.skip("a network namespace with rules needs root, nft and iptables")
    found = Place()
    yield found
    found.end()


async def test_rules_of_both_kinds_are_seen_as_long_as_they_are_there(place, monkeypatch):
    monkeypatch.setattr(kernel_rules, "SECONDS", 60.0)
    clock = Hand(100.0)
    rules = KernelRules(clock, prefix=place.prefix)
    add = ["iptables", "-t", "nat", "-A", "PREROUTING", "-p", "tcp", "--dport", "80", "-j", "DNAT"]
    place.run(*add, "--to-destination", "10.0.0.1:8080")
    place.run(*add, "--to-destination", "10.0.0.2:8080")
    assert await rules.find_named(WANTED) == {"10.0.0.1", "10.0.0.2"}
    place.run("iptables", "-t", "nat", "-D", "PREROUTING", "1")
    place.run("nft", "-f", "-", said=KUBE_PROXY)
    assert await rules.find_named(WANTED) == {"10.0.0.1", "10.0.0.2"}, "as read a moment ago"
    clock.now += REUSE_SECONDS
    assert await rules.find_named(WANTED) == {"10.0.0.2", "10.180.0.1", "fd00::7"}
    place.run("nft", "flush", "chain", "ip", "kube-proxy", "endpoint-A")
    clock.now += REUSE_SECONDS
    assert await rules.find_named(WANTED) == {"10.0.0.2", "fd00::7"}
    place.run("nft", "delete", "table", "ip", "kube-proxy")
    clock.now += REUSE_SECONDS
    assert await rules.find_named(WANTED) is None, "what has worked works no longer"


async def test_rules_that_can_no_longer_be_read_do_not_count_as_gone(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_rules, "SECONDS", 60.0)
    program, broken = tmp_path / "program", tmp_path / "broken"
    rules_of = (
        '[ "$1" != nft ] || { [ ! -e broken ] && echo dnat to 10.0.0.1:80; exit; }; echo --to-destination 10.0.0.2:80'
    )
    program.write_text(f"#!/bin/sh\ncd {tmp_path}\n{rules_of}\n")
    program.chmod(0o755)
    clock = Hand(100.0)
    rules = KernelRules(clock, prefix=[str(program)])
    assert await rules.find_named(WANTED) == {"10.0.0.1", "10.0.0.2"}
    broken.touch()
    clock.now += REUSE_SECONDS
    assert await rules.find_named(WANTED) is None
    broken.unlink()
    clock.now += REUSE_SECONDS
    assert await rules.find_named(WANTED) == {"10.0.0.1", "10.0.0.2"}


async def test_what_cannot_be_read_is_unknown_and_not_tried_again_at_once(tmp_path):
    calls, program = tmp_path / "calls", tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$1" >> {calls}\nexit 1\n')
    program.chmod(0o755)
    clock = Hand(100.0)
    rules = KernelRules(clock, prefix=[str(program)])
    assert await rules.find_named(WANTED) is None
    tried = len(calls.read_text().split())
    assert await rules.find_named(WANTED) is None
    assert len(calls.read_text().split()) == tried
    clock.now += FAILED_SECONDS
    assert await rules.find_named(WANTED) is None
    assert len(calls.read_text().split()) == 2 * tried
    assert await KernelRules(clock, prefix=["/nosuch"]).find_named(WANTED) is None


@pytest.mark.parametrize(("script", "seconds"), [("exec sleep 1000", 0.3), ("exec head -c 200000 /dev/zero", 60.0)])
async def test_a_program_that_hangs_or_prints_too_much_is_not_used(tmp_path, monkeypatch, script, seconds):
    monkeypatch.setattr(kernel_rules, "SECONDS", seconds)
    monkeypatch.setattr(kernel_rules, "MOST_BYTES", 100_000)
    program, pids = tmp_path / "program", tmp_path / "pids"
    program.write_text(f"#!/bin/sh\necho $$ >> {pids}\n{script}\n")
    program.chmod(0o755)
    assert await KernelRules(Hand(100.0), prefix=[str(program)]).find_named(WANTED) is None
    assert not [one for one in (pids.read_text() if pids.exists() else "").split() if Path(f"/proc/{one}").exists()]
