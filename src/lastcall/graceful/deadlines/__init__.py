"""Shutdowns that others than logind announce: which notices hold, and what their sources have said."""
