"""The Kubernetes objects that lastcall reads, as frozen structs of only the fields it uses, and arithmetic on them.

Pure: no I/O, no clock, no asyncio.
"""
