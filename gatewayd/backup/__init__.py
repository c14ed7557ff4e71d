"""Backups of the whole state: made while the daemon works, verified, restored, pruned.

Only `gatewayd.offline` imports it: all of it runs in a process of its own, and blocks there.
"""
