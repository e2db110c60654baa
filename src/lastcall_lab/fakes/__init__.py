"""Stand-ins for logind, fencers, watchdogs and storage; contract tests hold them against the real ones."""
