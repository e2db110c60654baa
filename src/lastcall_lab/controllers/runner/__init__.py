"""Runs all controllers: watches, queues, and the calls that they decide on."""
