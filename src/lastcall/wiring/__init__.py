"""Connects the core with its adapters: one module for each program and for each optional part of one."""
