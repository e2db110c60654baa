"""Runs all controllers: watches, work queues, and the requests for their actions."""
