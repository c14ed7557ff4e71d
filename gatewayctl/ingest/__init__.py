"""Bringing a collection in step with a directory: what is there, what to send, what to wait for.

Imported by `commands` only.
"""
