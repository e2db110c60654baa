"""Rehearsals in virtual time of what happens to a cluster when machines go down.

``wording`` reads a ``scenario`` from YAML; ``playing`` plays it: a ``cluster`` comes up, of a control ``plane`` and the
machines in ``machine``, and ``rehearsal`` lets ``deeds`` happen to it. ``truth`` hears what really happens; ``rules`` judges
it, ``measure`` makes an ``outcome`` of it, ``report`` prints that. ``state`` begins with a cluster that was recorded.
"""
