"""The bugs that `planted_bugs.py` plants."""
