"""A guarded RabbitMQ in the lab: real servers, the real kubectl, a client that counts its confirmed messages."""

import pytest
from support.guard import application_states as states
from support.guard.guarded_lab import wait
from support.guard.guarded_rabbitmq import GuardedRabbitmq, why_not

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


@pytest.fixture
def rabbitmq(tmp_path):
    made = GuardedRabbitmq(tmp_path, guarded=True)
    try:
        yield made.start()
    finally:
        made.end()


def test_a_roll_of_all_nodes_keeps_the_queue_and_every_confirmed_message(rabbitmq):
    before = {name: pod["metadata"]["uid"] for name, pod in rabbitmq.pods().items()}
    found = states.observe(rabbitmq, states.roll)
    assert all(pod["metadata"]["uid"] != before[name] for name, pod in rabbitmq.pods().items())
    assert found.lost == 0
    wait(lambda: len(rabbitmq.read_queue()["online"]) == 3, "replicas on all nodes")
    assert len(rabbitmq.read_queue()["members"]) == 3
    assert {"PreparingForDeletion", "ReadyForDeletion"} <= {*found.events.split()}
    wait(lambda: not rabbitmq.held(), "release of what was prepared")
