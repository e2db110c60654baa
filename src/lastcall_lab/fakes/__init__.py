"""Fakes of logind, fences, watchdogs and storage; contract tests compare them with the real ones."""
