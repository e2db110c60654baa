"""Joins the core with its adapters: one module for each program and each optional part of it."""
