"""lastcall gives every pod its last call: when a node goes down, the work on it ends well.

The rooms: ``model`` (facts, pure), ``graceful`` (a node says that it goes down), ``report`` (what happened, as a
timeline), ``ports`` (the roles that the outside plays), ``adapters`` (the outside), ``lab`` (a node and its
surroundings on one machine), ``wiring`` and ``cli`` (what joins them).
"""

__version__ = "0.1.0"
