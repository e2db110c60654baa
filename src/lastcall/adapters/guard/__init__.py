"""Providers that prepare applications for the deletion of a member, and what they may reach."""
