"""An upgrade of the guard: a replica of this version and one of a version to come, as real programs, at one lab.

Each leads for a while. Both answer reviews and write the status of the same GuardPolicy.
"""

import pytest
from support.guard.guarded_jobs import wait
from support.guard.next_version import FIELD, STATE
from support.guard.two_versions import NEXT, THIS, TwoVersions

pytestmark = pytest.mark.timeout(270)


@pytest.fixture
def cluster(tmp_path):
    made = TwoVersions(tmp_path)
    try:
        yield made.start()
    finally:
        made.end()


def test_neither_version_loses_what_the_other_has_recorded_and_no_pod_goes_unprepared(cluster):
    cluster.run(NEXT)
    cluster.wait_for_leader(NEXT)
    cluster.run(THIS)

    allowed, said = cluster.ask(THIS, "jobs-0")
    assert (allowed, "begins to prepare" in said) == (False, True), said
    wait(lambda: cluster.entries()["jobs-0"]["state"] == STATE, "state of the next version")
    wait(lambda: cluster.entries()["jobs-0"].get("percent") == 40, "progress")
    for name in ("jobs-0", "jobs-1", "jobs-0"):
        for version in (THIS, NEXT):
            assert not cluster.ask(version, name)[0]
    assert "a newer version of the guard prepares its application" in cluster.ask(THIS, "jobs-0")[1]
    assert "moves its jobs (40 % done" in cluster.ask(NEXT, "jobs-0")[1]
    wait(lambda: set(cluster.entries()) == {"jobs-0", "jobs-1"}, "entry that the old replica has made")
    wait(lambda: cluster.entries()["jobs-1"]["state"] == STATE, "state of the next version")

    before = cluster.entries()
    assert {one[FIELD] for one in before.values()} == {"fence"}
    cluster.stop(NEXT)
    cluster.wait_for_leader(THIS)
    wait(lambda: "Unknown" in cluster.kubectl("get pod jobs-0 -o jsonpath={.status.conditions[*].reason}"), "condition")
    (cluster.books / "ready").touch()
    for name in before:
        assert not cluster.ask(THIS, name)[0]
    after = cluster.entries()
    for name, entry in before.items():
        assert {**after[name], "lastRequestAt": entry["lastRequestAt"]} == entry, "it took no step"

    cluster.run(NEXT)
    assert not cluster.ask(THIS, "jobs-0")[0]
    cluster.stop(THIS)
    cluster.wait_for_leader(NEXT)
    cluster.run(THIS)
    wait(lambda: all(one["state"] == "Ready" for one in cluster.entries().values()), "readiness")
    for name in before:
        assert cluster.ask(THIS, name)[0]
        assert cluster.ask(NEXT, name)[0]
    assert {one[FIELD] for one in cluster.entries().values()} == {"fence"}
    calls = (cluster.books / "calls").read_text().split()
    assert (calls.count("prepare"), calls.count("cancel")) == (2, 0)
