"""Bugs of what holds fencing back: errors of the API server, nodes that block others, many at once, and how it is told."""

from planted.bug import Bug

ERRORS = ("tests/core/test_failover_errors.py",)
BLOCKED = ("tests/core/test_failover_blocked.py",)
MANY = ("tests/core/test_failover_many.py",)
HELD = ("tests/core/test_failover_held_back.py",)
STORMS = ("tests/core/test_failover_storms.py",)
_NOTING, _STORMS, _HELD = "adapters/kube/noting.py", "failover/limits/storms.py", "failover/telling/held_back.py"
_ROOM, _WORKER, _HEEDING = "failover/doing/room.py", "failover/doing/worker.py", "failover/doing/heeding.py"
BUGS = [
    Bug("no run of errors of the API server is one", _NOTING, "if self.run >= RUN:", "if False:", ERRORS),
    Bug(
        "an answer ends no run of errors",
        _NOTING,
        "        self.run = 0\n        self._count",
        "        self._count",
        ERRORS,
    ),
    Bug("a share of few requests is one", _NOTING, "every >= AMONG and failed >=", "failed >=", ERRORS),
    Bug("any share of errors is one", _NOTING, "failed >= SHARE * every", "failed > 0", ERRORS),
    Bug("errors of long ago make a share", _NOTING, "<= self.now - WITHIN:", "<= self.now - 1e9:", ERRORS),
    Bug("reads that fail do not count", _NOTING, "if failed and target != self._alone:", "if False:", ERRORS),
    Bug("writes that fail do not count", _NOTING, "        elif failed:\n", "        elif False:\n", ERRORS),
    Bug("one object that cannot be read counts each time", _NOTING, "target != self._alone:", "True:", ERRORS),
    Bug(
        "requests without an answer do not count",
        _NOTING,
        '            self._health.note(f"{path}: {error}")\n            raise\n        except',
        "            raise\n        except",
        ERRORS,
    ),
    Bug(
        "an answer that is waited for in vain does not count",
        _NOTING,
        "self._health.now >= asked + PATIENCE",
        "False",
        ERRORS,
    ),
    Bug(
        "events that cannot be written count as errors of the API server",
        "adapters/kube/failover_cluster.py",
        "self._unnoted = Client(transport,",
        "self._unnoted = Client(Noting(transport, self._health),",
        ERRORS,
    ),
    Bug("a view is trusted as soon as errors end", _STORMS, "now < at + limits.settle:", "now <= at:", ERRORS),
    Bug("an error does not name what was asked", "adapters/kube/client.py", "failed.request = ", "ignored = ", ERRORS),
    Bug(
        "nodes without a domain have a limit of one", _STORMS, "    if not node.domain:\n        return\n", "", BLOCKED
    ),
    Bug(
        "a node that is dead for good keeps its place",
        _STORMS,
        "if one.domain == node.domain and not one.failed_over}",
        "if one.domain == node.domain}",
        BLOCKED,
    ),
    Bug(
        "a node that got an order gives its place back",
        "failover/deciding/proving.py",
        "if refused and not case.mark.switched_off and not case.mark.tainted:",
        "if refused and not case.mark.tainted:",
        BLOCKED,
    ),
    Bug(
        "a mark that is given back takes a person's word with it",
        "failover/doing/acting.py",
        "keep_word=given_back",
        "keep_word=False",
        BLOCKED,
    ),
    Bug(
        "a node is marked before its fencers are asked",
        "failover/deciding/course.py",
        "    claiming.fencer,\n",
        "",
        BLOCKED,
    ),
    Bug(
        "a new leader does not know who is failed over",
        "failover/doing/guard.py",
        "self._done[case.name] = mark.boot_id",
        "pass",
        BLOCKED,
    ),
    Bug("who comes first is first, whatever the rank", _ROOM, "head[1] if longest else head[0]", "head[1]", MANY),
    Bug(
        "nothing is ever busy",
        _ROOM,
        "return any(not one.turn.done() for",
        "return False and any(not one.turn.done() for",
        MANY,
    ),
    Bug("a place that nobody wants is lost", _ROOM, "queue and queue[0].turn.done():", "False:", MANY),
    Bug(
        "more nodes are read at once than there is room for",
        "failover/doing/gathering.py",
        "async with self._room.place(rank):",
        "if True:",
        MANY,
    ),
    Bug("who is failed over is looked at as often as others", _WORKER, "self._idle and self._busy()", "False", MANY),
    Bug(
        "who is failed over is read before others begin",
        _WORKER,
        "            return 2\n",
        "            return 0\n",
        MANY,
    ),
    Bug("who has begun waits for those that begin", _WORKER, "return 0 if self._follows else 1", "return 1", MANY),
    Bug(
        "what stands against all nodes is not told of a node that was read before",
        _HELD,
        "if trouble and not case.dead and isinstance(step, AskTarget | Mark | SwitchOff):",
        "if False:",
        HELD,
    ),
    Bug(
        "what stands against all nodes is not told of a node that was never read",
        _HEEDING,
        "held_back.standing_unread(trouble) if knot.silent(now) and not _tainted(knot) else None",
        "None",
        HELD,
    ),
    Bug(
        "a node that is heard of is told to wait",
        _HEEDING,
        "if knot.silent(now) and not _tainted(knot) else None",
        "",
        HELD,
    ),
    Bug(
        "a node that was never read is in no metric",
        _HEEDING,
        "if trouble and trouble.limit and answer is trouble:",
        "if False:",
        HELD,
    ),
    Bug(
        "a policy whose status cannot be written ends the controller",
        _HEEDING,
        "            except LastcallError as error:",
        "            except ZeroDivisionError as error:",
        HELD,
    ),
    Bug(
        "each error writes the status of a policy",
        _HELD,
        "return {**old} if old and _still_true(old, entry, ends, wall) else entry",
        "return entry",
        HELD,
    ),
    Bug("a time that has passed is told for ever", _HELD, "not wall < told <= ends + 1", "not told <= ends + 1", HELD),
    Bug("since when a limit stands is forgotten", _HELD, 'old["since"] if old else _date(wall)', "_date(wall)", HELD),
    Bug(
        "a limit is told to nodes that do not wait for it",
        _HELD,
        'if node in entry["nodes"] or limit in _ALL_NODES:',
        "if True:",
        HELD,
    ),
    Bug(
        "explain does not read which limits stand",
        "failover/telling/objects.py",
        "if told := held_back.reported(found.status, node=name, now=now):",
        "if False:",
        HELD,
    ),
    Bug("an hour's limit has no end", _STORMS, "            not_before=again,\n", "", STORMS),
    Bug(
        "who fills the quorum is not told",
        _STORMS,
        "now + limits.settle, blocked_by=away - {node.name})",
        "now + limits.settle)",
        STORMS,
    ),
    Bug("a node that is failed over is told to wait", _HEEDING, "and not _tainted(knot) else", "else", HELD),
]
