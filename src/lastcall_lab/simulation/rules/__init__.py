"""The rules by which a run is judged: each module has those of one subject, and reads the truth alone (pure)."""
