"""lastcall gives every pod its last call: when a node shuts down, the work on it ends well.

The rooms, from the bottom: ``model`` (facts, pure), ``ports`` (the roles that the outside plays), ``graceful`` (a node shuts
down in order), ``failover`` (a node is gone), ``watchdog`` and ``storage`` (evidence that a node has stopped), ``report`` (what
happened, as a timeline), ``manifests``, ``doctor``, ``adapters`` (the outside), ``wiring`` and ``cli`` (what joins them). The lab
is a distribution of its own, ``lastcall_lab``.
"""

__version__ = "0.2.0"
