"""The database of the demo's third act: three members as programs; what a leader that goes costs, and a handover."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from lastcall_lab.demo import order_database
from lastcall_lab.demo.order_database import PORT

ADDRESSES = [f"127.63.17.{number}" for number in (1, 2, 3)]
pytestmark = pytest.mark.xdist_group("order-database")


def ask(address, path, value=None):
    """Status and answer; 0 without one."""
    body = None if value is None else json.dumps(value).encode()
    try:
        with urllib.request.urlopen(f"http://{address}:{PORT}{path}", body, timeout=20) as answer:  # noqa: S310 - loopback
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code, None
    except OSError:
        return 0, None


def wait_until(condition):
    end = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def leader(*without):
    found = [one for one in ADDRESSES if one not in without and (ask(one, "/state")[1] or {}).get("leads")]
    return found[0] if len(found) == 1 else None


@pytest.fixture
def members(tmp_path):
    """By address. They lead when all three answer."""
    running = {
        one: subprocess.Popen(
            [sys.executable, order_database.__file__], env={**os.environ, "POD_IP": one, "PEERS": tmp_path}
        )
        for one in ADDRESSES
    }
    wait_until(lambda: leader() and ask(leader(), "/guard/health")[1]["healthy"])
    yield running
    for process in running.values():
        process.kill()
        process.wait()


def test_a_leader_that_goes_without_a_handover_takes_acknowledged_orders_with_it(members):
    first = leader()
    wait_until(lambda: ask(first, "/order", {"number": 0})[0] == 200)
    for number in range(1, 30):
        assert ask(first, "/order", {"number": number})[0] == 200
    members[first].terminate()
    other = wait_until(lambda: leader(first))
    assert len(ask(other, "/orders")[1]) < 30
    assert not ask(other, "/guard/health")[1]["healthy"], "a member is missing"


def test_a_leader_that_has_handed_over_takes_nothing_with_it(members):
    first = leader()
    assert ask(first, "/guard/progress?uid=u")[1]["state"] == "lost"
    for number in range(30):
        assert ask(first, "/order", {"number": number})[0] == 200
    ask(first, "/guard/prepare", {"uid": "u"})
    assert ask(first, "/order", {"number": 30})[0] == 503
    wait_until(lambda: ask(first, "/guard/progress?uid=u")[1]["state"] == "ready")
    members[first].terminate()
    other = wait_until(lambda: leader(first))
    assert ask(other, "/orders")[1] == list(range(30))


def test_what_is_unknown_is_not_there(members):
    assert ask(ADDRESSES[0], "/nothing")[0] == 404
    assert ask(ADDRESSES[0], "/nothing", {})[0] == 404
