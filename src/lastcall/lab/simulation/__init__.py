"""Rehearsals in virtual time: a whole cluster from a scenario and a seed, with faults, and judged by what really happened."""
