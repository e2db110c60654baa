"""The same facts are the same object until something of them is read anew."""

from weakref import ref

from lastcall.adapters.kube.recalled_facts import KEPT_SECONDS, RecalledFacts
from lastcall.model.guard_facts import GuardedMetadata, GuardedNode, GuardFacts
from lastcall_lab.virtual import VirtualClock, run


def node(name="n1"):
    return GuardedNode(metadata=GuardedMetadata(name=name))


def test_the_same_answers_are_the_same_facts_for_a_moment():
    async def main():
        clock = VirtualClock()
        recalled, around, known = RecalledFacts(clock), GuardFacts(), node()
        made = recalled.compose_facts("shop", "n1", around, known)
        assert made.nodes == {"n1": known}
        assert recalled.compose_facts("shop", "n1", around, known) is made
        assert recalled.find("shop", "n1") is made
        assert recalled.find("shop", "n2") is not made
        assert recalled.find("other", "n1") is not made
        await clock.sleep(KEPT_SECONDS)
        assert recalled.find("shop", "n1") is not made
        assert recalled.compose_facts("shop", "n1", around, known) is made
        assert recalled.find("shop", "n1") is made
        recalled.forget("shop")
        assert recalled.find("shop", "n1") is not made

    run(main())


def test_what_is_read_anew_makes_other_facts():
    async def main():
        recalled, around, known = RecalledFacts(VirtualClock()), GuardFacts(), node()
        made = recalled.compose_facts("shop", "n1", around, known)
        with_other_node = recalled.compose_facts("shop", "n1", around, node())
        assert with_other_node is not made
        assert recalled.find("shop", "n1") is not made
        without = recalled.compose_facts("shop", "n1", around, None)
        assert without.nodes == {}
        assert recalled.compose_facts("shop", "n1", around, None) is without
        other = GuardFacts()
        assert recalled.compose_facts("shop", "n1", other, None) is not without

    run(main())


def test_what_rests_on_an_older_answer_is_forgotten():
    async def main():
        recalled, known = RecalledFacts(VirtualClock()), node("n2")
        old = ref(recalled.compose_facts("shop", "n1", GuardFacts(), node()))
        assert old()
        recalled.compose_facts("shop", "n2", GuardFacts(), known)
        assert old() is None

    run(main())
