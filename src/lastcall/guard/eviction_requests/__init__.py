"""EvictionRequests (KEP-4563): the guard as a responder, a requester, the controller of requests, and the last evictor.

Nothing but the wiring depends on this package: the API's types still change.
"""
