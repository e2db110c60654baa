"""Clusters as chance makes them, and rules to look at them by."""

from hypothesis import strategies as st
from support.failover.snapshots import (
    OUT,
    UNREACHABLE,
    ago,
    attachment,
    exists,
    lease,
    node,
    pod,
    taint,
    unique,
    volume,
)

NAMES = ("n1", "n2", "n3")
SECONDS = st.none() | st.integers(-5, 400)

tolerations = st.lists(
    st.builds(
        exists,
        st.sampled_from(["", OUT, UNREACHABLE, "k"]),
        st.sampled_from(["", "NoExecute", "NoSchedule"]),
        SECONDS,
    ),
    max_size=3,
)
taints = st.lists(
    st.builds(
        taint,
        st.sampled_from([OUT, UNREACHABLE, "k"]),
        st.sampled_from(["NoExecute", "NoSchedule"]),
        timeAdded=st.none() | st.integers(0, 300).map(ago),
    ),
    max_size=3,
)
volumes = st.sets(st.sampled_from([unique("v1"), unique("v2"), "kubernetes.io/other/v3"])).map(sorted)


def pods(name):
    return st.builds(
        pod,
        st.just(name),
        st.sampled_from(["", *NAMES]),
        terminating=st.booleans(),
        phase=st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"]),
        reason=st.sampled_from(["", "Evicted"]),
        age=st.integers(0, 99),
        tolerates=tolerations,
        claim=st.sampled_from(["", "c1", "c2"]),
        states=st.lists(st.sampled_from(["running", "waiting", "terminated"]), max_size=2),
    )


@st.composite
def clusters(draw):
    """A few nodes, not all of which are there, with pods, volumes and Leases."""
    objects = []
    for name in draw(st.sets(st.sampled_from(NAMES))):
        ready = draw(st.sampled_from(["True", "False", "Unknown", None]))
        found = node(name, ready, *draw(taints), heard=draw(st.none() | st.integers(0, 200)))
        found["status"]["volumesInUse"] = draw(volumes)
        found["status"]["volumesAttached"] = [{"name": one} for one in draw(volumes)]
        objects.append(found)
        if draw(st.booleans()):
            objects.append(lease(name, draw(st.integers(-10, 200))))
    objects += [draw(pods(f"p{number}")) for number in range(draw(st.integers(0, 6)))]
    for name, claim in (("v1", "c1"), ("v2", "c2")):
        objects.append(volume(name, claim, phase=draw(st.sampled_from(["Bound", "Released"]))))
        objects += [attachment(f"va-{name}-{on}", name, on) for on in NAMES if draw(st.booleans())]
    return objects


rules = st.fixed_dictionaries(
    {
        "finished": st.integers(-1, 4),
        "quarantine_elapsed": st.booleans(),
        "detach_timeout_elapsed": st.booleans(),
        "force_on_timeout": st.booleans(),
    }
)
