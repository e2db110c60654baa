"""Kubernetes in little on one machine, and in virtual time: for trying, testing and rehearsing; never for production.

The rooms, from the bottom: ``virtual`` (virtual time), ``apiserver``, ``controllers``, ``machines``, ``volumes``, ``traffic``,
``processes`` and ``containerd`` (what pods run on), ``kubelet``, ``fakes`` and ``private_logind``, ``control_plane`` (API server
and controllers joined), ``up`` (the lab on this machine), ``simulation`` (rehearsals in virtual time), ``demo`` and ``cli``.
"""

__version__ = "0.2.0"
