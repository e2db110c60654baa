"""The lab on this machine: ``lastcall lab up``, its machines, pages and remote commands."""
