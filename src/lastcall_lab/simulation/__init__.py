"""Rehearsals in virtual time: what happens to a cluster when machines go down.

``scenario_text`` reads a ``scenario`` from YAML, and ``runner`` plays it: a ``cluster`` starts, made of a
``control_plane`` and the machines in ``machine``, and ``rehearsal`` performs the ``actions``. ``truth`` records what
really happens, ``rules`` judge it, ``outcome_builder`` measures it as an ``outcome``, and ``report`` prints that.
``recorded_cluster`` starts from a cluster that was read with kubectl.
"""
