"""The rows of ``lastcall guard status``."""

from support.guard.reviews import NOW, facts, held, policy, state

from lastcall.report.guard_status import list_held_pods, table_rows


def rows(*entries, pod=""):
    return list_held_pods(facts(state(policy(*entries))).policies, pod)


def test_held_pods_are_sorted_and_released_ones_left_out():
    found = rows(
        held("Ready", "db-2"), held("Released", "db-1"), held("Stalled", "db-0", message="a replica is frozen")
    )
    assert [(one.name, one.state.value) for one in found] == [("db-0", "Stalled"), ("db-2", "Ready")]
    assert [one.name for one in rows(held("Ready", "db-2"), held("Ready", "db-0"), pod="db-0")] == ["db-0"]


def test_a_row_says_why_how_far_since_when_and_by_whom():
    found = rows(
        held("Preparing", percent=40, etaSeconds=90, requestedBy="ann", message="moves 3 leaders"),
        held("Ready", "db-1"),
    )
    assert list(table_rows(found, NOW)) == [
        (("shop", "db-0", "Preparing", "40%", "1m30s", "60s", "db", "ann"), "moves 3 leaders"),
        (("shop", "db-1", "Ready", "<none>", "<none>", "60s", "db", "<none>"), "<none>"),
    ]
