"""Translates a pod's specification into what the runtime gets (pure)."""
