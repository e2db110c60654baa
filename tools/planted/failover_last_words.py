"""Bugs in what the failover controller makes of a node's own word that it goes down."""

from planted.bug import Bug

WORDS = ("tests/core/test_failover_last_words.py",)
UNREAD = ("tests/core/test_failover_unread.py",)

BUGS = [
    Bug(
        "a word that cannot be read puts fencing off for ever",
        "failover/doing/reading.py",
        "if self._unread and self._unread.given_up(self._clock.boottime()):",
        "if False:",
        UNREAD,
    ),
    Bug(
        "a word that could not be read once is not asked for any more",
        "failover/knowing/unread.py",
        "self.last >= self.since + UNSTATED",
        "self.last >= self.since",
        UNREAD,
    ),
    Bug(
        "a word for which the server lets wait each time puts fencing off for ever",
        "failover/knowing/unread.py",
        "GAP = 180.0",
        "GAP = 60.0",
        UNREAD,
    ),
    Bug(
        "failures that lie far apart are one row",
        "failover/knowing/unread.py",
        "before is not None and now <= before.last + GAP",
        "before is not None",
        UNREAD,
    ),
    Bug(
        "a node's own clock says until when it is waited for",
        "failover/knowing/last_words.py",
        "deadline=word.began + word.seconds,",
        "deadline=word.seconds,",
        WORDS,
    ),
    Bug(
        "a shutdown that was cancelled frees pods, as the watch has not said so",
        "failover/knowing/last_words.py",
        "cancelled=word.cancelled or (same is not None and _cancelled(same)),",
        "cancelled=word.cancelled,",
        WORDS,
    ),
    Bug(
        "pods that ended in one shutdown count as gone in the next one",
        "failover/knowing/last_words.py",
        "same = live if live and _which(live) == (word.boot_id, word.start) else None",
        "same = live if live and live.spec.boot_id == word.boot_id else None",
        WORDS,
    ),
    Bug(
        "a watch that is behind takes back what was read",
        "failover/knowing/last_words.py",
        "if before and number_of(revision) < number_of(before.revision):",
        "if False:",
        WORDS,
    ),
    Bug(
        "of an etcd that was restored no word is heard",
        "failover/knowing/last_words.py",
        "if since is None or number_of(revision) >= number_of(since.revision):",
        "if True:",
        WORDS,
    ),
    Bug(
        "a word of any age is a sign of life",
        "failover/knowing/proofs.py",
        "case LastWord(written=written, new=True):",
        "case LastWord(written=written):",
        WORDS,
    ),
    Bug(
        "nobody knows that a node's first word is new",
        "failover/doing/observing.py",
        "first = Watched.SHUTDOWNS not in self._synced",
        "first = True",
        WORDS,
    ),
    Bug(
        "a word that no watch has told of is not heard",
        "failover/doing/gathering.py",
        "            reading.shutdown(name, self._observing),\n",
        "            reading.shutdown(name, self._observing) if self._observing.word(name) else _nothing(),\n",
        WORDS,
    ),
    Bug(
        "who may not read the words of nodes fails nobody over",
        "adapters/kube/failover_cluster.py",
        "except (NotFound, ApiNotPermitted):",
        "except NotFound:",
        WORDS,
    ),
    Bug(
        "every step asks for the node's word again",
        "failover/doing/reading.py",
        "if asked >= self._shutdown_asked + LASTS:",
        "if True:",
        WORDS,
    ),
]
