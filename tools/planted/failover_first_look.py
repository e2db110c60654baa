"""Bugs of the failover controller: what is taken for a first look, and who goes first."""

from planted.bug import Bug

FIRST_LOOK = ("tests/core/test_failover_first_look.py",)
MANY = ("tests/core/test_failover_many.py",)
READING = ("tests/core/test_failover_reading.py",)

BUGS = [
    Bug(
        "what a decision was made from is a first look however old it is",
        "failover/doing/reading.py",
        "if node is None or old or not same",
        "if node is None or not same",
        (*FIRST_LOOK, *READING),
    ),
    Bug(
        "a renewal of the own lease serves however old it is",
        "failover/doing/surety.py",
        "        if now >= led + AHEAD:\n",
        "        if False:\n",
        FIRST_LOOK,
    ),
    Bug(
        "what was read for the decision holds from now on",
        "failover/doing/surety.py",
        "self._at = min(self._reading.asked, led)",
        "self._at = now",
        FIRST_LOOK,
    ),
    Bug(
        "a renewal of the own lease that is not new holds as long as the rest",
        "failover/doing/surety.py",
        "self._at = min(self._reading.asked, led)",
        "self._at = self._reading.asked",
        FIRST_LOOK,
    ),
    Bug(
        "what was read for the decision is held against no rule",
        "failover/doing/surety.py",
        "            return False\n        self._judge(node)\n",
        "            return False\n",
        FIRST_LOOK,
    ),
    Bug(
        "what was read for the decision counts though the watch has told something newer",
        "failover/doing/reading.py",
        " or seen.overtaken(node) else node",
        " else node",
        (*FIRST_LOOK, *READING),
    ),
    Bug(
        "a Node that is not there any more counts as its pods that have gone",
        "failover/doing/surety.py",
        "        except NotFound:\n            raise RefusedForSafety",
        "        except ZeroDivisionError:\n            raise RefusedForSafety",
        FIRST_LOOK,
    ),
    Bug(
        "an order to a fence follows what was read for the decision",
        "failover/doing/acting.py",
        "        node = await surety.look()\n        mark = owner.read(node.mark)",
        "        await surety.check()\n        node = _live(subject)\n        mark = owner.read(node.mark)",
        FIRST_LOOK,
    ),
    Bug(
        "what was read serves though the node was heard of",
        "failover/doing/reading.py",
        "or old or not same or",
        "or old or",
        READING,
    ),
    Bug(
        "the answer to a write makes what was read of the Lease younger",
        "failover/doing/reading.py",
        "            self._node = node\n",
        "            self._node, self.asked = node, self._clock.boottime()\n",
        READING,
    ),
    Bug(
        "what was read before a word with a fence serves after it",
        "failover/doing/reading.py",
        "isinstance(step, steps.Mark | ",
        "isinstance(step, steps.AskPower | steps.SwitchOff | steps.Mark | ",
        READING,
    ),
    Bug(
        "after a step that has failed nothing is read anew",
        "failover/doing/worker.py",
        "        self._follows = False\n        gathered = await",
        "        gathered = await",
        READING,
    ),
    Bug(
        "each step reads the node anew",
        "failover/doing/worker.py",
        "        self._follows = serves(step)\n",
        "",
        READING,
    ),
    Bug(
        "each node waits until all others have begun",
        "failover/doing/room.py",
        "self._waiting.setdefault(rank, deque())",
        "self._waiting.setdefault(0, deque())",
        FIRST_LOOK,
    ),
    Bug(
        "a node that is back is not read for as long as others are",
        "failover/doing/room.py",
        "longest = self._places % FAIR == 0",
        "longest = False",
        MANY,
    ),
    Bug(
        "who is cancelled as he is given room keeps it for ever",
        "failover/doing/room.py",
        "if not turn.cancelled():",
        "if False:",
        FIRST_LOOK,
    ),
    Bug(
        "each call keeps its place while its node is looked at",
        "failover/doing/batch.py",
        "rank=rank, soon=self._check_ahead",
        "rank=rank",
        FIRST_LOOK,
    ),
    Bug(
        "a look ahead outlives its step",
        "failover/doing/batch.py",
        "                self._checking.cancel()\n                await asyncio.gather(self._checking, return_exceptions=True)",
        "                pass",
        FIRST_LOOK,
    ),
]
